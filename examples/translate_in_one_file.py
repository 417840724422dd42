"""Train a Transformer and translate, from text to BLEU: "Attention Is All You Need" in one file.

    python examples/translate_in_one_file.py [train.tsv test.tsv [BLEU's tokenizer]]

Without files it learns English to German from Weft's built-in sentences: BLEU 94.5 on 500 that it
never saw, in 3.2 minutes on one thread of an AMD EPYC server. The tokenizer of BLEU is 13a, for
languages with spaces; for Chinese give zh. `weft train` gives the same at the same settings:
docs/lessons.md has its command. (tests/test_example.py compares both to the last bit; for that it
lets `weft train` compute its loss in the plain form that stands here.) Names are those of src/weft;
the comment above a part says in which file it stands there. Sections are the paper's: Vaswani et
al. 2017. B batch, L length, D d_model, H heads, d_k width of a head, V vocabulary; in equation 1
alone V is the values.

Of the paper it leaves out the averaging of checkpoints, section 6.1: the last weights translate.
"""

import itertools
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from sacrebleu.metrics.bleu import BLEU
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from torch import Tensor, nn

PAD_ID, UNK_ID, BOS_ID, EOS_ID = range(4)
SPECIALS = ["<pad token>", "<unk token>", "<bos token>", "<eos token>"]
# the most tokens of a source with eos, or of a target with bos: positions are made for so many
MAX_LEN = 1024
PIECE_PATTERN = r" ?[\p{L}\p{M}]+| ?\p{N}{1,3}| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+"

Pairs = list[tuple[str, str]]
PairsOfIds = list[tuple[list[int], list[int]]]


# config.py
@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result, except the text: the paper's numbers, made smaller."""

    vocab_size: int = 2000
    tokens_per_batch: int = 4096
    d_model: int = 128
    d_ff: int = 512
    num_heads: int = 4
    num_layers: int = 2
    dropout: float = 0.1
    max_steps: int = 600
    warmup_steps: int = 300
    label_smoothing: float = 0.1
    seed: int = 1
    beam_size: int = 4
    length_penalty: float = 0.6


# data/vocabulary.py, `_bpe`; what surrounds its trainer: data/pipeline.py, `tokenizer_tree`
def build_tokenizer(texts: list[str], vocab_size: int) -> Tokenizer:
    """Learn byte-pair encoding, section 5.1; a word carries the space before it."""
    tokenizer = Tokenizer(models.BPE())
    space = normalizers.Prepend(" ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), space])
    words = pre_tokenizers.Split(Regex(PIECE_PATTERN), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    without_space = decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), without_space])
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=SPECIALS,
        max_token_length=64,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


# data/batches.py, `Batches`
def make_plan(pairs: PairsOfIds, recipe: Recipe, epoch: int) -> list[list[Tensor]]:
    """Shuffle, sort by length, cut into batches of so many tokens, and shuffle the batches.

    The paper's batches have about 25,000 source and 25,000 target tokens of sentences of similar
    length, section 5.1; how these are chosen it does not say. Here the tokens of both sides are
    counted together, those of padding too. The lines with a comment are details:
    they make the batches equal those of `weft train`. Skip them on a first reading.
    """
    generator = np.random.default_rng([recipe.seed, epoch])
    order = generator.permutation(len(pairs))
    lens = np.array([(len(src) + 1, len(tgt) + 1) for src, tgt in pairs])
    # even widths, but none above the longest sentence: fewer shapes, for which kernels are set up
    widths = np.minimum(lens + lens % 2, lens.max(axis=0))
    first, second = widths[order].T
    # a coin decides whether to sort by source or by target first: other batches in each epoch
    if generator.integers(2):
        first, second = second, first
    # widths are even: every other width of the first side runs backwards through the second, so
    # that no batch jumps from longest to shortest
    second = np.where(first % 4, -second, second)
    rows = order[np.lexsort((second, first))]
    plan = []
    while len(rows):
        widest = np.maximum.accumulate(widths[rows[: recipe.tokens_per_batch]])
        sizes = widest.sum(axis=1) * np.arange(1, len(widest) + 1)
        count = max(int((sizes <= recipe.tokens_per_batch).sum()), 1)
        # batches of more than 8 rows have a multiple of 8: again fewer shapes
        count -= count % 8 if count > 8 else 0
        chosen = [pairs[row] for row in rows[:count]]
        plan.append(collate(chosen, *widest[count - 1].tolist()))
        rows = rows[count:]
    return [plan[i] for i in generator.permutation(len(plan))]


def collate(pairs: PairsOfIds, src_width: int, tgt_width: int) -> list[Tensor]:
    """Return source, decoder input and labels of pairs, padded on the right to these widths."""
    src = padded([[*src, EOS_ID] for src, _ in pairs], src_width)
    tgt_in = padded([[BOS_ID, *tgt] for _, tgt in pairs], tgt_width)
    tgt_out = padded([[*tgt, EOS_ID] for _, tgt in pairs], tgt_width)
    return [src, tgt_in, tgt_out]


def padded(rows: list[list[int]], width: int) -> Tensor:
    """Return rows of ids as one tensor of this width."""
    return torch.tensor([row + [PAD_ID] * (width - len(row)) for row in rows])


# model/positions.py
def sinusoids(num_positions: int, d_model: int) -> Tensor:
    """Return sin(pos / 10000^(2i/D)) in dimension 2i, its cos in 2i + 1: (L, D), section 3.5."""
    position = torch.arange(num_positions, dtype=torch.float64)[:, None]
    exponent = -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angle = position * 10_000.0**exponent
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1).float()


# model/attention.py, as the next one
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k)) V, equation 1: (B, H, L, d_k).

    `mask` is True where a query may attend to a key, section 3.2.3: to no padding, and in the
    decoder's self-attention to no later position. It broadcasts to (B, H, L, L).
    """
    # the query is divided, as it has fewer numbers than the product
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ value


class MultiHeadAttention(nn.Module):
    """H attentions side by side, each on its own projections of width d_k, section 3.2.2.

    `query`, `key`, `value` and `output` are W^Q, W^K, W^V and W^O, the first three of all heads;
    each adds a bias, which the paper's do not. `memory` is the sequence attended to: the encoder's
    output, or x itself.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.num_heads = recipe.num_heads
        self.query = nn.Linear(recipe.d_model, recipe.d_model)
        self.key = nn.Linear(recipe.d_model, recipe.d_model)
        self.value = nn.Linear(recipe.d_model, recipe.d_model)
        self.output = nn.Linear(recipe.d_model, recipe.d_model)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        projected = (self.query(x), self.key(memory), self.value(memory))
        cut = (y.unflatten(2, (self.num_heads, -1)) for y in projected)
        heads = attention(*(y.transpose(1, 2) for y in cut), mask)
        return self.output(heads.transpose(1, 2).flatten(2))


# model/layers.py, as the next three
class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at every position: equation 2."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.inner = nn.Linear(recipe.d_model, recipe.d_ff)
        self.outer = nn.Linear(recipe.d_ff, recipe.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).relu())


class Residual(nn.Module):
    """LayerNorm(x + dropout(Sublayer(x))), sections 3.1 and 5.4."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(recipe.d_model)
        self.dropout = nn.Dropout(recipe.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention over the source, then feed-forward."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(recipe)
        self.feed_forward = FeedForward(recipe)
        self.residuals = nn.ModuleList(Residual(recipe) for _ in range(2))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, mask))
        return self.residuals[1](x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, attention over the memory, then feed-forward."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(recipe)
        self.cross_attention = MultiHeadAttention(recipe)
        self.feed_forward = FeedForward(recipe)
        self.residuals = nn.ModuleList(Residual(recipe) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        x = self.residuals[0](x, lambda y: self.self_attention(y, y, mask))
        x = self.residuals[1](x, lambda y: self.cross_attention(y, memory, real))
        return self.residuals[2](x, self.feed_forward)


# model/transformer.py, as the next two
class Embedding(nn.Module):
    """Token vectors times sqrt(D), plus positions, then dropout, sections 3.4, 3.5 and 5.4."""

    def __init__(self, recipe: Recipe, vocab_size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, recipe.d_model)
        self.positions = sinusoids(MAX_LEN, recipe.d_model)
        self.dropout = nn.Dropout(recipe.dropout)

    def forward(self, ids: Tensor) -> Tensor:
        tokens = self.tokens(ids) * math.sqrt(self.tokens.embedding_dim)
        return self.dropout(tokens + self.positions[: ids.shape[1]])


class Seq2SeqTransformer(nn.Module):
    """Encoder and decoder; both embeddings and the output projection are one matrix.

    The projection adds a bias, which the paper's does not.
    """

    def __init__(self, recipe: Recipe, vocab_size: int) -> None:
        super().__init__()
        layers = range(recipe.num_layers)
        self.src_embedding = self.tgt_embedding = Embedding(recipe, vocab_size)
        self.encoder = nn.ModuleList(EncoderLayer(recipe) for _ in layers)
        self.decoder = nn.ModuleList(DecoderLayer(recipe) for _ in layers)
        self.projection = nn.Linear(recipe.d_model, vocab_size)
        self.projection.weight = self.src_embedding.tokens.weight
        init_weights(self)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return the logits of the token after each target position: (B, L, V)."""
        return self.decode(tgt_in, *self.encode(src))

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory of a source, z in the paper's section 3, (B, L, D), and where it is no
        padding, (B, 1, 1, L).
        """
        # this mask and `no_later` below: `attention_mask` in model/attention.py
        real = (src != PAD_ID)[:, None, None, :]
        x = self.src_embedding(src)
        for layer in self.encoder:
            x = layer(x, real)
        return x, real

    def decode(self, tgt_in: Tensor, memory: Tensor, real: Tensor) -> Tensor:
        """Return the logits of the token after each target position: (B, L, V)."""
        length = tgt_in.shape[1]
        no_later = torch.ones(length, length, dtype=torch.bool).tril()
        x = self.tgt_embedding(tgt_in)
        for layer in self.decoder:
            x = layer(x, no_later, memory, real)
        return self.projection(x)


def init_weights(model: nn.Module) -> None:
    """Draw matrices by Glorot and Bengio 2010, embeddings of deviation D^-0.5; biases are zero."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
    tokens = model.src_embedding.tokens
    nn.init.normal_(tokens.weight, std=tokens.embedding_dim**-0.5)


# training/loss.py
def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Sum the cross-entropy over real tokens, section 5.4.

    The V - 2 tokens that are neither true nor padding share the smoothing; where it comes from,
    Szegedy et al. 2016, section 7, all V share it.
    """
    real = labels != PAD_ID
    log_probs = logits.log_softmax(-1)
    true = log_probs.gather(-1, labels[:, None]).squeeze(-1)
    others = log_probs.sum(-1) - log_probs[:, PAD_ID] - true
    share = smoothing / (logits.shape[-1] - 2)
    return (1 - smoothing) * -true[real].sum() - share * others[real].sum()


# training/schedule.py
def learning_rate(recipe: Recipe, step: int) -> float:
    """Return D^-0.5 min(step^-0.5, step warmup^-1.5): equation 3."""
    rising = step * recipe.warmup_steps**-1.5
    return recipe.d_model**-0.5 * min(step**-0.5, rising)


# training/trainer.py, as the next one
def seed_random(*place: int) -> None:
    """Seed dropout so that its draws in a batch depend on seed, epoch and position only."""
    seed = np.random.SeedSequence(place).generate_state(1, np.uint64)[0]
    torch.manual_seed(int(seed) >> 1)  # 63 bits: positive as a signed number, too


def train(model: nn.Module, recipe: Recipe, pairs: PairsOfIds) -> list[float]:
    """Take `max_steps` steps, epoch after epoch; return the loss per target token of each."""
    optimizer = torch.optim.Adam(  # section 5.3; fused: one call for all weights
        model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    losses: list[float] = []
    for epoch in itertools.count():
        plan = make_plan(pairs, recipe, epoch)
        for position, (src, tgt_in, tgt_out) in enumerate(plan):
            if len(losses) == recipe.max_steps:
                return losses
            seed_random(recipe.seed, epoch, position)
            logits = model(src, tgt_in).flatten(0, 1)
            labels = tgt_out.flatten()
            loss = smoothed_cross_entropy(logits, labels, recipe.label_smoothing)
            num_tgt_tokens = int((labels != PAD_ID).sum())
            # times the reciprocal, as `weft train` has it: division would round differently
            (loss * (1 / num_tgt_tokens)).backward()
            losses.append(loss.item() / num_tgt_tokens)
            optimizer.param_groups[0]["lr"] = learning_rate(recipe, len(losses))
            optimizer.step()
            optimizer.zero_grad()
            if len(losses) % 50 == 0:
                print(f"step {len(losses)}: loss {losses[-1]:.3f}", flush=True)


# decoding/reference.py, there for many sentences and with scores; the limit: predict/rows.py,
# `most_tokens`, which allows at most MAX_LEN - 1
@torch.inference_mode()
def beam_search(model: nn.Module, src: list[int], recipe: Recipe) -> list[int]:
    """Return the best target of one sentence, section 6.1.

    It is at most 50 tokens longer than the source, eos counted on both sides. If nothing has ended
    by then, the most probable one is returned, which has another token in the place of eos.
    """
    memory, real = model.encode(torch.tensor([[*src, EOS_ID]]))
    limit = min(memory.shape[1] + 50, MAX_LEN)
    alpha = recipe.length_penalty
    # by the length of a target, eos counted
    penalties = [((5 + length) / 6) ** alpha for length in range(limit + 1)]
    live = [([], 0.0)]  # ids and their log-probability
    best, best_score = None, -math.inf
    for length in range(1, limit + 1):
        tgt_in = torch.tensor([[BOS_ID, *ids] for ids, _ in live])
        # one row of memory per hypothesis; `real`, of one row, broadcasts to them
        logits = model.decode(tgt_in, memory.expand(len(live), -1, -1), real)
        log_probs = logits[:, -1].log_softmax(-1)
        # these are no text; the paper does not speak of them
        log_probs[:, [PAD_ID, UNK_ID, BOS_ID]] = -math.inf
        candidates = []
        for (ids, log_prob), row in zip(live, log_probs, strict=True):
            values, tokens = row.topk(recipe.beam_size)
            for value, token in zip(values.tolist(), tokens.tolist(), strict=True):
                candidates.append(([*ids, token], log_prob + value))
        candidates.sort(key=lambda candidate: -candidate[1])
        live = []
        for ids, log_prob in candidates[: recipe.beam_size]:
            score = log_prob / penalties[length]
            if ids[-1] != EOS_ID:
                live.append((ids, log_prob))
            elif score > best_score:
                best, best_score = ids[:-1], score
        # log-probabilities only fall, and the limit has the largest penalty: no live one can
        # become better than this
        if not live or live[0][1] / penalties[limit] <= best_score:
            break
    return live[0][0] if best is None else best


# predict/translator.py
def translate(
    model: nn.Module, tokenizer: Tokenizer, texts: list[str], recipe: Recipe
) -> list[str]:
    """Translate texts, one after another."""
    model.eval()
    encoded = encode(tokenizer, texts)
    return tokenizer.decode_batch([beam_search(model, src, recipe) for src in encoded])


def encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    """Return the ids of each text; end the program for one that is too long."""
    rows = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    for text, ids in zip(texts, rows, strict=True):
        if len(ids) >= MAX_LEN:
            most = f"at most {MAX_LEN - 1:,} fit; leave it out, or raise MAX_LEN"
            sys.exit(f"a text has {len(ids):,} tokens: {most}: {text[:60]} ...")
    return rows


class Result(NamedTuple):
    """What a run gives: the loss of every step, the model, translations of the test, BLEU."""

    losses: list[float]
    model: nn.Module
    tokenizer: Tokenizer
    translations: list[str]
    bleu: float


def run(
    recipe: Recipe, train_pairs: Pairs, test_pairs: Pairs, words: str = "13a"
) -> Result:
    """Learn a tokenizer and a model, translate the test, and score the translations.

    `words` is the tokenizer by which BLEU counts, of those that sacreBLEU has.
    """
    metric = BLEU(tokenize=words, force=True)  # first: it may lack a package
    sides = [list(side) for side in zip(*train_pairs, strict=True)]
    tokenizer = build_tokenizer(sides[0] + sides[1], recipe.vocab_size)
    pairs = list(zip(*(encode(tokenizer, side) for side in sides), strict=True))
    torch.manual_seed(recipe.seed)
    model = Seq2SeqTransformer(recipe, tokenizer.get_vocab_size())
    losses = train(model, recipe, pairs)
    sources, references = (list(side) for side in zip(*test_pairs, strict=True))
    translations = translate(model, tokenizer, sources, recipe)
    bleu = metric.corpus_score(translations, [references]).score
    return Result(losses, model, tokenizer, translations, bleu)


def read_pairs(path: str) -> Pairs:
    """Read lines of source, tab, target."""
    try:
        lines = Path(path).read_text("utf-8").rstrip("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{path}: {error}")
    pairs = [tuple(line.split("\t")) for line in lines]
    for number, pair in enumerate(pairs, start=1):
        if len(pair) != 2:
            sys.exit(f"{path}:{number}: write source, tab, target on every line")
    return pairs


def main() -> None:
    """Run the recipe on two files, or on the built-in sentences."""
    began = time.monotonic()
    paths, words = sys.argv[1:3], sys.argv[3:] or ["13a"]
    if len(paths) == 2 and len(words) == 1:
        if words[0] not in BLEU.TOKENIZERS:
            known = ", ".join(BLEU.TOKENIZERS)
            sys.exit(f"BLEU has no tokenizer {words[0]!r}: {known}")
        train_pairs, test_pairs = map(read_pairs, paths)
    elif not paths:
        from weft.data import builtin  # noqa: PLC0415  the text alone

        text = builtin.pairs("everyday", "en", "de")
        train_pairs, test_pairs = text.train, text.test
    else:
        usage = f"usage: {sys.argv[0]} [train.tsv test.tsv [BLEU's tokenizer]]"
        sys.exit(f"{usage}; that is one of {', '.join(BLEU.TOKENIZERS)}")
    result = run(Recipe(), train_pairs, test_pairs, *words)
    for (src, _), translation in zip(test_pairs[:5], result.translations, strict=False):
        print(f"{src}\n  {translation}")
    print(f"BLEU {result.bleu:.1f}, {(time.monotonic() - began) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
