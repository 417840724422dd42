"""Who may import whom, read from the source: every module has its storey, and nothing runs what it
should not.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import weft

ROOT = Path(weft.__file__).parent

# Module or package: what of ours it may import (a package stands for all in it). `errors`,
# `console`: for all. A module is ruled by the most specific row that names it; rows of data, model
# and training lean only leftwards.
MAY_IMPORT = """
errors:
packages:
console:
config:
recipes: config recipes
evaluation: evaluation
evaluation.terms: data.check data.glossary evaluation
kernels: kernels

folder:
folder.unfinished:
folder.durable: folder.unfinished
folder.together: folder.durable folder.unfinished
folder.version:
folder.layout: folder.durable
folder.mapped:
folder.archive:
folder.arrays: folder.mapped
folder.exported: folder.durable
folder.model_files: folder.archive folder.durable folder.exported folder.layout folder.mapped
folder.profiles: folder.arrays folder.durable folder.mapped
folder.snapshots: folder.arrays folder.layout
folder.model_folder: config folder.arrays folder.durable folder.layout folder.mapped folder.model_files\
 folder.profiles folder.version recipes

data.home: folder.unfinished
data.column: data.home
data.crew:
data.equals:
data.minhash: data.equals
data.measures: data.column data.crew data.home data.minhash data.split
data.held_out: data.equals data.measures data.split
data.base: data.column
data.builtin: data.builtin
data.kept:
data.plain_lines: data.formats
data.known:
data.tf_idf: data.known
data.grams:
data.profile: data.grams data.languages
data.detection: data.grams data.languages data.profile
data.languages:
data.scripts: data.languages
data.segment: data.languages
data.split:
data.formats: data.formats data.languages
data.train_text: data.languages
data.corpus: data.base data.column data.formats data.held_out data.languages data.measures data.split data.train_text
data.dates: data.languages
data.check: data.base data.check data.column data.corpus data.crew data.dates data.documents data.equals data.formats\
 data.home data.labelled data.languages data.measures data.minhash data.numbers data.scripts data.split
data.clean: config data.base data.check data.clean data.column data.corpus data.crew data.documents data.equals\
 data.formats data.home data.labelled data.measures data.split
data.clean.writing: data.clean data.corpus data.documents data.formats data.languages folder.durable\
 folder.together
data.overlap: data.equals data.split
data.kind: data.formats data.train_text
data.columns: config data.corpus data.formats data.kind
data.glossary_columns: data.languages
data.glossary: data.formats data.glossary_columns data.kept data.languages data.scripts
data.glossary_check: data.formats data.glossary data.glossary_columns
data.nearness:
data.numbers: data.dates data.languages
data.substitution: data.languages
data.near_index: data.equals data.nearness
data.masked: data.nearness
data.mono: config data.corpus data.formats data.languages data.train_text
data.memory: data.base data.corpus data.formats data.languages data.near_index data.nearness data.substitution
data.json_lines: data.formats data.glossary data.memory
data.documents: data.base data.formats data.split
data.labelled: data.base data.formats data.split
data.signature: data.split data.tokenizer
data.normalize: config
data.pipeline: config
data.pieces: data.pipeline
data.places:
data.unigram: data.pipeline
data.vocabulary: config data.pipeline data.unigram
data.tokenizer_file: config data.pipeline
data.merges:
data.rows: data.pipeline
data.tokenizer: config data.merges data.normalize data.pieces data.pipeline data.places data.rows data.scripts\
 data.tokenizer_file data.vocabulary
data.encoding: config data.column data.crew data.home data.measures data.rows data.tokenizer folder.durable
data.learning: config data.column data.crew data.home data.measures data.tokenizer
data.worker: data.check data.clean data.crew data.encoding data.learning data.measures
data.spans: data.tokenizer
data.hints: data.scripts data.tokenizer
data.links:
data.phrases: data.links data.scripts data.tokenizer
data.hinting: data.corpus data.glossary data.hints data.links data.memory data.phrases data.spans data.tokenizer
data.marks: config data.corpus data.tokenizer
data.store: data.column data.encoding data.hinting data.marks data.rows data.tokenizer folder.durable
data.sources: config data.check data.corpus data.languages data.store data.train_text
data.batches: data.store data.tokenizer
data.streams: data.store data.tokenizer
data.windows: data.batches data.store data.streams data.tokenizer
data.label_batches: data.batches data.store data.tokenizer
data.directions: config data.corpus data.formats data.languages data.train_text
data.checked: data.check data.corpus folder.durable folder.version
data.texts: config data.base data.builtin data.check data.checked data.corpus data.directions data.documents\
 data.glossary data.labelled\
 data.signature data.sources data.split data.train_text
data.checkup: config data.base data.check data.corpus data.directions data.documents data.labelled\
 data.texts\
 data.train_text

model.cache:
model.mode:
model.positions: kernels
model.attention: kernels model.cache model.positions
model.ngrams: config
model.linear:
model.layers: config kernels model.attention model.cache
model.transformer: config kernels model.attention model.cache model.layers model.positions
model.causal: config kernels model.attention model.cache model.layers model.ngrams\
 model.positions model.transformer
model.classifier: config model.attention model.layers model.ngrams model.transformer
model.recurrent: config model.attention
model.flops: model.attention model.causal model.classifier model.layers model.transformer

decoding: decoding

engine: decoding engine kernels model

training.loss: kernels
training.memory: kernels training.distributed training.loss training.trainer
training.schedule: config
training.distributed: kernels training.loss training.sharding
training.sharding:
training.optimizer: config kernels training.distributed
training.moving_average: training.distributed
training.checkpoint: folder.durable folder.layout
training.snapshots: folder.durable folder.snapshots
training.scores:
training.mixtures:
training.loss_scale: training.checkpoint
training.trackers:
training.log: folder.durable training.checkpoint training.scores training.trackers
training.trainer: config folder.layout kernels training.checkpoint training.distributed training.log\
 training.mixtures training.loss training.loss_scale training.moving_average training.optimizer training.scores\
 training.snapshots
training.budget: config folder.durable training.mixtures training.schedule training.trainer

predict: config data decoding engine predict
predict.document: documents predict
documents: documents
documents.units: data.formats data.memory data.scripts documents
documents.coded: data.formats documents
documents.standing: data.formats data.memory data.substitution documents
documents.kept: data.kept documents
documents.numbers: data.numbers documents
documents.formats.bilingual.units: data.languages documents
documents.formats.bilingual.tmx: data.languages documents
documents.formats.programs.qt: data.languages documents
documents.formats.bilingual.plurals: data.languages
tasks: config data engine evaluation folder kernels model predict recipes tasks training
tasks.task: config data folder kernels
tasks.translation: config data decoding engine evaluation folder kernels predict tasks.task
tasks.language_modelling: config data engine evaluation folder kernels predict tasks.task
tasks.classification: config data engine evaluation folder kernels predict tasks.task
tasks.detecting: data folder tasks.task
tasks.opening: folder kernels tasks.choice tasks.detecting tasks.task
inspection: config data decoding engine evaluation folder inspection kernels model predict tasks training
inspection.assets:
run.record: data folder training
run.translations: data folder predict tasks
run.backtranslation: data folder run.translations
run.begun: config data folder recipes run.card tasks
run.origin: config data folder recipes run.begun run.record training
run.request: config data folder recipes run.origin
run.beginning: config folder run.origin run.record run.request training
run.judging: data evaluation folder inspection model.linear predict run.judging tasks
run.repetition: config data folder recipes run.begun run.record training
run.publication: data folder kernels run.card run.judging run.record run.repetition tasks training
run.planning: config data folder run.request tasks training
run.sizing: config data folder kernels run.request training
run.preparing: config data folder kernels predict recipes run.origin run.planning run.record run.request run.sizing\
 tasks training
run.card: data tasks
run.by_workers: cluster data folder run.translations
run: config data folder kernels recipes run run.beginning\
 run.origin run.preparing run.publication run.record run.request tasks training
ship: data folder run training
ship.parity:
ship.quantization: data decoding engine folder kernels predict run ship.parity tasks
ship.tokenizers: config data ship.tokenizers
ship.web: config engine inspection.assets inspection.browser ship tasks
ship.tokenizers: config data ship.tokenizers
ship.tensors:
ship.opened: ship.tensors
ship.written: ship.opened ship.tensors ship.tokenizers
ship.source: config data folder predict tasks
ship.target: folder.exported ship.opened ship.source ship.written
ship.targets: ship.target
ship.lengths: folder
ship.licenses:
ship.own_card: folder run
ship.head: data folder ship.licenses ship.own_card ship.source ship.target
ship.card: folder ship.certificate ship.head ship.licenses ship.own_card ship.source ship.target ship.written
ship.certificate: data decoding engine evaluation predict ship.certificate ship.opened ship.source ship.tensors\
 ship.tokenizers ship.written tasks
ship.certificate.compared: config data run ship.source tasks
ship.certificate.report: folder
ship.hub: folder ship.target
ship.pushing: folder ship tasks
ship.exporting: folder ship
ship.tokenizing: folder ship.source ship.tokenizers
ship.onnx: config data decoding engine folder predict ship
ship.onnx.loops:
ship.gguf: config data folder predict ship
ship.transformersjs: config folder predict ship
ship.huggingface: config data folder predict ship
ship.ctranslate2: config data folder kernels predict ship
ship.argos: data folder predict ship
cluster: cluster data.plain_lines folder
cluster.tasks: cluster data.check data.crew data.worker folder
sweep: config data evaluation folder inspection kernels recipes run.begun sweep tasks
sweep.child: __main__
serve: data documents folder predict serve tasks
serve.searching: decoding predict serve
serve.service: data decoding inspection predict serve
serve.files: inspection.assets serve
serve.history: folder serve
cli: *
__main__: *
looking: *
__init__: *
"""
# where an import may stand inside a function or for types alone
DEFERRED = ("cli", "__main__", "__init__", "looking")
# where what takes long to load is loaded when it is needed: PyTorch, sacreBLEU, matplotlib
LATE = (
    "tasks.opening",
    "inspection.own_pass",
    "inspection.inspected",
    "evaluation.metrics",
    "training.distributed",
)
# Packages that take long to load, and the modules of ours that have them at their head: these are
# imported where they are needed alone.
HEAVY = {
    "torch.distributed.fsdp": "training.sharding",
    "torch.distributed.tensor": "training.sharding",
}
# Packages of an extra, loaded by name where a recipe asks for them.
OPTIONAL = {
    ("data.formats.parquet", "pyarrow"),
    ("documents.formats.programs.fluent", "fluent.syntax"),
    ("documents.formats.text.markdown_inline", "markdown_it"),
    ("data.nearness", "rapidfuzz.distance.Levenshtein"),
    ("packages", "package"),
    ("cluster.on_ray", "ray"),
    ("cluster.on_ray", "ray.data"),
    ("data.normalize", "opencc"),
    ("ship.target", "package"),
    ("ship.targets", "module"),
    ("data.normalize", "spacy"),
    ("data.normalize", "nltk.tokenize"),
    ("training.trackers", "tensorboard.summary.writer.record_writer"),
    ("training.trackers", "tensorboard.compat.proto.event_pb2"),
}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}


def table() -> dict[str, list[str]]:
    rows = (line.split(":") for line in MAY_IMPORT.split("\n") if line)
    return {name: allowed.split() for name, allowed in rows}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module by its name within weft; a package by that of its folder."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(path.read_bytes(), str(path))
    return found


def imported(node: ast.AST) -> Iterator[str]:
    """The absolute names that an import statement may bind modules of."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "a relative import"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def ours(names: Iterator[str]) -> Iterator[str]:
    """Names of our modules: `weft.data.corpus.fold` is of data.corpus."""
    for name in names:
        parts = name.split(".")
        if parts[0] != "weft":
            continue
        inner = [".".join(parts[1 : end + 1]) for end in range(len(parts), 0, -1)]
        yield next(
            (candidate for candidate in inner if candidate in modules()), "__init__"
        )


def edges(name: str) -> set[str]:
    return {
        target for node in ast.walk(modules()[name]) for target in ours(imported(node))
    } - {name}


def covers(entry: str, name: str) -> bool:
    return entry in ("*", name) or name.startswith(f"{entry}.")


def row_of(name: str) -> str | None:
    return max((row for row in table() if covers(row, name)), key=len, default=None)


def test_the_reading_of_imports_sees_something() -> None:
    assert edges("training.trainer") >= {
        "config",
        "errors",
        "training.checkpoint",
        "training.log",
    }
    assert edges("run.train") >= {"folder.layout", "run.preparing", "training.trainer"}
    assert "inspection.report" in edges("cli.look")


def test_every_module_has_a_storey_and_every_row_a_module() -> None:
    empty = {name for name, tree in modules().items() if not tree.body}
    assert (
        sorted(name for name in modules() if name not in empty and row_of(name) is None)
        == []
    )
    assert (
        sorted(
            row for row in table() if not any(covers(row, name) for name in modules())
        )
        == []
    )
    entries = {entry for allowed in table().values() for entry in allowed} - {"*"}
    assert (
        sorted(e for e in entries if not any(covers(e, name) for name in modules()))
        == []
    )


def test_every_allowance_is_used() -> None:
    used: dict[str, set[str]] = {row: set() for row in table()}
    for name in modules():
        if (row := row_of(name)) is not None:
            used[row] |= edges(name)
    idle = [
        (row, entry)
        for row, allowed in table().items()
        for entry in allowed
        if entry != "*" and not any(covers(entry, target) for target in used[row])
    ]
    assert idle == []


def test_a_module_imports_only_what_its_storey_allows() -> None:
    wrong = []
    for name in modules():
        allowed = [
            *table().get(row_of(name) or "", []),
            "errors",
            "packages",
            "console",
        ]
        for target in sorted(edges(name)):
            if not any(covers(entry, target) for entry in allowed):
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_there_are_no_cycles() -> None:
    try:
        TopologicalSorter(
            {name: edges(name) for name in modules() if not name.startswith("__")}
        ).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_what_a_reader_of_pairs_is_made_of_does_not_lead_to_the_registry() -> None:
    """Which imports the reader: whoever follows CONTRIBUTING.md would close a circle."""
    page = (ROOT.parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    (step,) = re.findall(
        r"^1\. Write `src/weft/data/formats/.*?(?=^2\.)", page, re.M | re.S
    )
    reached = set(re.findall(r"`(?:formats/)?([a-z_]+)\.py`", step))
    reached = {f"data.formats.{name}" for name in reached}
    assert {"data.formats.json_object", "data.formats.xml_walk"} <= reached
    while new := set().union(*map(edges, reached)) - reached:
        reached |= new
    assert "data.formats.row" in reached
    assert "data.formats.registry" not in reached


def test_the_table_itself_has_no_cycle_between_rooms() -> None:
    rooms: dict[str, set[str]] = {}
    for row, allowed in table().items():
        rooms.setdefault(row.split(".")[0], set()).update(
            a.split(".")[0] for a in allowed if a != "*"
        )
    TopologicalSorter({room: needs - {room} for room, needs in rooms.items()}).prepare()


def test_data_and_model_have_no_door_between_them() -> None:
    between = [
        (name, target)
        for name in modules()
        for target in edges(name)
        if {name.split(".")[0], target.split(".")[0]} == {"data", "model"}
    ]
    assert between == []


def functions(tree: ast.AST) -> Iterator[ast.AST]:
    return (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def called(node: ast.AST) -> str:
    """`a.b.c` of a call `a.b.c(...)`; empty for all else."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def loads_by_name(name: str, node: ast.AST) -> bool:
    """Whether this is an import by name of what is no package of an extra."""
    if called(node).split(".")[-1] not in {"import_module", "__import__"}:
        return False
    code = ast.unparse(node)
    return not any(name == who and what in code for who, what in OPTIONAL)


def test_imports_stand_at_the_head() -> None:
    elsewhere = []
    for name, tree in modules().items():
        if name.split(".")[0] in DEFERRED or name in LATE:
            continue
        inner = (node for f in functions(tree) for node in ast.walk(f))
        wrong = [node for node in inner if list(imported(node))]
        for node in ast.walk(tree):
            for_types = isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"
            if for_types or loads_by_name(name, node):
                wrong.append(node)
        elsewhere += [f"{name}:{node.lineno} {ast.unparse(node)}" for node in wrong]
    assert elsewhere == []


def test_what_takes_long_to_load_is_loaded_where_it_is_needed() -> None:
    loading = []
    for name, tree in modules().items():
        heads = {target for node in tree.body for target in imported(node)}
        for package, home in HEAVY.items():
            if f"weft.{home}" in heads:
                loading.append(f"{name} imports {home}")
            if name != home and any(head.startswith(f"{package}.") for head in heads):
                loading.append(f"{name} imports {package}")
    assert loading == []


def test_no_module_is_a_drawer_for_everything() -> None:
    assert [name for name in modules() if FORBIDDEN_NAMES & set(name.split("."))] == []


RUNS_CODE = {"eval", "exec", "compile", "torch.load", "torch.save", "os.system"}
PICKLES = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def test_nothing_unpickles_evaluates_or_splits_lines_at_other_ends() -> None:
    wrong = []
    for name, tree in modules().items():
        calls = {called(node) for node in ast.walk(tree)}
        methods = {call.split(".")[-1] for call in calls}
        targets = [t for node in ast.walk(tree) for t in imported(node)]
        loaded = {target.split(".")[0] for target in targets}
        # one starts the compiler, the others Weft's own processes
        starts = name in ("kernels.compiling", "data.crew", "sweep.processes")
        refused = PICKLES if starts else PICKLES | {"subprocess"}
        bad = calls & RUNS_CODE | methods & {"splitlines"} | loaded & refused
        wrong += [f"{name}: {word}" for word in sorted(bad)]
    assert wrong == []


def test_arrays_are_read_and_written_without_pickle() -> None:
    files = {"np.load", "np.save", "numpy.load", "numpy.save"}
    unguarded = []
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in files:
                flags = [k for k in node.keywords if k.arg == "allow_pickle"]
                if [ast.unparse(k.value) for k in flags] != ["False"]:
                    unguarded.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert unguarded == []


def test_the_public_names_exist_and_are_sorted() -> None:
    kinds = {"DEMO": 0, **{name: 2 for name in weft.__all__ if name.islower()}}
    assert weft.__all__ == sorted(weft.__all__, key=lambda n: (kinds.get(n, 1), n))
    assert all(getattr(weft, name) is not None for name in weft.__all__)
