"""What nbformat, the library of Jupyter itself, says about notebooks.

make FROM TO: writes each notebook below FROM, and what nbformat makes of it in
the formats 4.5 and 3, below TO.
check: reads lines of JSON, each an edit with the files before and after it, and
prints what is wrong with those after it.
"""

import gzip
import json
import pathlib
import sys
import warnings

import nbformat

warnings.simplefilter("ignore")


def cells_of(nb):
    if nb.nbformat == 3:
        return [cell for sheet in nb.worksheets for cell in sheet.cells]
    return nb.cells


def valid(nb):
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as e:
        return str(e).splitlines()[0]
    return None


def make(source, target):
    n = 0
    for path in sorted(pathlib.Path(source).rglob("*.ipynb*")):
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        pathlib.Path(target, f"{n:03}.ipynb").write_bytes(raw)
        for major in (4, 3):
            nb = nbformat.reads(raw.decode(), as_version=major)
            if major == 4:
                nb.nbformat_minor = 5
                for i, cell in enumerate(nb.cells):
                    cell.setdefault("id", f"cell{i:04x}")
            if valid(nb) is None:
                nbformat.write(nb, pathlib.Path(target, f"{n:03}-v{major}.ipynb"), version=nbformat.NO_CONVERT)
        n += 1


def source_of(cell):
    return cell.get("input", "") if "input" in cell else cell.get("source", "")


def wrong(edit):
    before = nbformat.read(edit["before"], as_version=nbformat.NO_CONVERT)
    after = nbformat.read(edit["after"], as_version=nbformat.NO_CONVERT)
    if valid(before) is None and valid(after) is not None:
        return "it is not valid: " + valid(after)
    if {k: v for k, v in before.items() if k not in ("cells", "worksheets")} != {k: v for k, v in after.items() if k not in ("cells", "worksheets")}:
        return "what is not in a cell has changed"
    old, new, at = cells_of(before), cells_of(after), edit["index"]
    if edit["mode"] != "delete":
        cell = new.pop(at)
        if source_of(cell) != edit["source"]:
            return f"the source is {source_of(cell)!r}"
        if cell.cell_type != edit["type"]:
            return f"the type is {cell.cell_type}"
        if cell.cell_type == "code" and cell.get("outputs"):
            return "it has outputs"
    if edit["mode"] != "insert":
        old.pop(at)
    if old != new:
        return "another cell has changed"
    return None


if sys.argv[1] == "make":
    make(sys.argv[2], sys.argv[3])
else:
    for line in sys.stdin:
        edit = json.loads(line)
        text = wrong(edit)
        if text:
            print(f"{edit['name']}: {text}")
