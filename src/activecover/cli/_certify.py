"""``activecover certify``: make a certificate for an auditor, or verify one against a log."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from activecover.cli import _options as options
from activecover.cli._campaigns import HomeFolder, KeyGiven, Large, StoreUrl
from activecover.cli._show import out, print_json
from activecover.errors import InputError
from activecover.files import replacing
from activecover.stopping import Rule, make_rule
from activecover.workspace import PublicKey, Workspace, read_certificate, sign_certificate, signing_key, verify


def certify(
    name: Annotated[str | None, typer.Argument(help="The campaign.", show_default=False)] = None,
    target: Annotated[float | None, typer.Option("--target", help="A recall other than the planned one.")] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", help="A confidence other than the planned one.")
    ] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="A rule other than the planned one.")] = None,
    file: Annotated[Path | None, typer.Option("--out", help="Write the certificate to this file (JSON).")] = None,
    check: Annotated[
        Path | None, typer.Option("--verify", help="Verify this certificate instead of making one.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", help="Verify it against this archive instead of a campaign.")
    ] = None,
    key: KeyGiven = None,
    large: Large = False,
    home: HomeFolder = None,
    store: StoreUrl = None,
    json: options.Json = False,
) -> int:
    """Make a certificate of recall, or verify one.

    A certificate states a bound on recall, the rule behind it, and the labels it rests on. It is signed with the key of the home (``activecover key``). Exit code 1: the target is not certified, or the certificate does not verify.
    """
    if check is not None:
        for option, value in (("--target", target), ("--confidence", confidence), ("--rule", rule), ("--out", file)):
            if value is not None:
                raise InputError(f"{option} is for making a certificate, not for verifying one: leave it out")
        return _verify(check, name, archive, key, large, home, store, json)
    for option, given in (("--archive", archive), ("--key", key)):
        if given is not None:
            raise InputError(f"{option} is for verifying: give the certificate with --verify")
    if name is None:
        raise InputError("name a campaign, or give a certificate to verify with --verify")
    with Workspace(home, store) as place, place.open(name) as campaign:
        made = campaign.certificate(_rule(rule, target, confidence), name=name)
        document = sign_certificate(place, made)
    if file is not None:
        with replacing(file) as temporary:
            temporary.write_text(json_module.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    if json:
        print_json(document)
    else:
        out().print(Text(made.text().rstrip()), soft_wrap=True)
        out().print(Text(f"Signed with the key {document['signature']['fingerprint']}."), soft_wrap=True)
        if file is not None:
            out().print(Text(f"written to {file}; verify with: activecover certify --verify {file} --archive ARCHIVE"))
    return 0 if made.certified else 1


def _rule(name: str | None, target: float | None, confidence: float | None) -> Rule | None:
    """A rule other than the campaign's own; None if no option asks for one."""
    if name is None and target is None and confidence is None:
        return None
    given = {"target": target, "confidence": confidence}
    return make_rule(name or "weighted-betting", **{key: value for key, value in given.items() if value is not None})


def _verify(
    file: Path,
    name: str | None,
    archive: Path | None,
    key: str | None,
    large: bool,
    home: Path | None,
    store: str | None,
    json: bool,
) -> int:
    if (name is None) == (archive is None):
        raise InputError("give either --archive ARCHIVE or the name of a campaign to verify the certificate against")
    trusted = None if key is None else PublicKey.read(key)
    document: Any = read_certificate(file)
    try:
        if archive is not None:
            verdict = verify(document, archive=archive, key=trusted, large=large)
        else:
            assert name is not None
            with Workspace(home, store) as place, place.open(name) as campaign:
                verdict = verify(document, campaign=campaign, key=trusted)
    except InputError as problem:
        raise InputError(f"{file}: {problem}" if "certificate" in str(problem) else str(problem)) from problem
    if json:
        print_json({"verified": verdict.verified, "problems": verdict.problems, "signatures": verdict.notes})
        return 0 if verdict.verified else 1
    for line in verdict.problems:
        out().print(Text(f"does NOT verify: {line}"), soft_wrap=True)
    for line in verdict.notes:
        out().print(Text(f"signature: {line}"), soft_wrap=True)
    if verdict.verified:
        out().print(Text(f"verified: {file} follows from the log, event by event"), soft_wrap=True)
        out().print(Text(document["statement"][0]), soft_wrap=True)
    return 0 if verdict.verified else 1


def show_key(home: HomeFolder = None, json: options.Json = False) -> int:
    """Show the public key for certificates and archives signed in this home.

    Give it to auditors through a channel other than the documents themselves. To replace it, move keys/signing.pem out of the home: a new key is made for the next signature, and older documents are verified with the old public key.
    """
    with Workspace(home) as place:
        public = signing_key(place.folder).public
    if json:
        print_json({"algorithm": "Ed25519", "public_key": public.text, "fingerprint": public.fingerprint})
    else:
        out().print(Text(f"public key   {public.text}\nfingerprint  {public.fingerprint}"), soft_wrap=True)
    return 0


def register(app: typer.Typer) -> None:
    """Add the commands to the root."""
    app.command("certify", rich_help_panel="Campaigns")(certify)
    app.command("key", rich_help_panel="Campaigns")(show_key)
