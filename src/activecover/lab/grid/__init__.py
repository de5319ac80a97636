"""The grid of the paper's experiments, and its tables and figure next to the published results."""

from activecover.lab.grid._cells import Cell, Result
from activecover.lab.grid._compute import Plan
from activecover.lab.grid._frontier import Measurement, measure_frontiers
from activecover.lab.grid._grid import Grid
from activecover.lab.grid._paper import paper_auc, paper_best
from activecover.lab.grid._protocol import METHODS, Trial, prepare_trial, run_trial
from activecover.lab.grid._reading import READINGS, Reading
from activecover.lab.grid._report import Row, compare, summarise, table_rows
from activecover.lab.grid._run import make_plan, run_plan
from activecover.lab.grid._verify import TOLERANCE, Check, compare_cells, verify

__all__ = [
    "METHODS",
    "READINGS",
    "TOLERANCE",
    "Cell",
    "Check",
    "Grid",
    "Measurement",
    "Plan",
    "Reading",
    "Result",
    "Row",
    "Trial",
    "compare",
    "compare_cells",
    "make_plan",
    "measure_frontiers",
    "paper_auc",
    "paper_best",
    "prepare_trial",
    "run_plan",
    "run_trial",
    "summarise",
    "table_rows",
    "verify",
]
