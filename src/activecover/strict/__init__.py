"""Untrusted JSON, arrays and zip files, checked against limits before they are used."""

from activecover.strict._arrays import check_npy, check_npz
from activecover.strict._json import JsonLimits, read_json
from activecover.strict._zip import ZipLimits, checked_zip, copy_member

__all__ = ["JsonLimits", "ZipLimits", "check_npy", "check_npz", "checked_zip", "copy_member", "read_json"]
