"""What training_lm.py measures Weft against; runs where torch and transformers are, and needs
nothing of Weft.

`gpt` is a causal model in a plain loop, in nanoGPT's manner: pre-norm layers, fused attention,
learned positions, AdamW, windows from random places of the text. `gpt2` and `bert` are
transformers' models of those names under its Trainer, `bert` with a label for each text and batches
padded to their longest.
"""

import argparse
import contextlib
import json
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

# nowhere on attention's weights, where it would keep the fused kernel from being used
DROPOUT = 0.1


class Layer(nn.Module):
    """Attention to what came before, and a feed-forward network, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, length, width)."""
        split = (
            self.qkv(self.norms[0](x))
            .unflatten(2, (3, self.heads, -1))
            .permute(2, 0, 3, 1, 4)
        )
        mixed = (
            F.scaled_dot_product_attention(*split, is_causal=True)
            .transpose(1, 2)
            .flatten(2)
        )
        x = x + self.dropout(self.out(mixed))
        return x + self.dropout(self.down(F.gelu(self.up(self.norms[1](x)))))


class Gpt(nn.Module):
    """Logits of the next token at each position."""

    def __init__(self, asked: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(asked.entries, asked.width)
        self.positions = nn.Parameter(0.02 * torch.randn(asked.context, asked.width))
        self.layers = nn.Sequential(
            *(Layer(asked.width, asked.heads) for _ in range(asked.layers))
        )
        self.norm, self.dropout = nn.LayerNorm(asked.width), nn.Dropout(DROPOUT)
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """ids: (batch, length)."""
        x = self.dropout(self.tokens(ids) + self.positions[: ids.shape[1]])
        return F.linear(self.norm(self.layers(x)), self.tokens.weight)


def train_gpt(asked: argparse.Namespace) -> None:
    """The loop."""
    ids = torch.from_numpy(np.load(asked.data / "ids.npy").astype(np.int64))
    model = Gpt(asked)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1
    )
    low = (
        torch.autocast("cpu", torch.bfloat16)
        if asked.bf16
        else contextlib.nullcontext()
    )
    while True:
        starts = torch.randint(len(ids) - asked.context, (asked.batch,))
        windows = torch.stack(
            [ids[start : start + asked.context + 1] for start in starts.tolist()]
        )
        with low:
            logits = model(windows[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def train_gpt2(asked: argparse.Namespace) -> None:
    """transformers' Trainer on the text's windows."""
    ids = np.load(asked.data / "ids.npy").astype(np.int64)
    windows = ids[: len(ids) // asked.context * asked.context].reshape(
        -1, asked.context
    )
    config = GPT2Config(
        vocab_size=asked.entries,
        n_positions=asked.context,
        n_embd=asked.width,
        n_layer=asked.layers,
        n_head=asked.heads,
        attn_pdrop=0.0,
        bos_token_id=2,
        eos_token_id=3,
    )
    train(
        asked,
        GPT2LMHeadModel(config),
        [{"input_ids": row, "labels": row} for row in torch.from_numpy(windows)],
    )


def train_bert(asked: argparse.Namespace) -> None:
    """transformers' Trainer on labelled texts of different lengths."""
    texts = json.loads((asked.data / "texts.json").read_text("utf-8"))
    config = BertConfig(
        vocab_size=asked.entries,
        hidden_size=asked.width,
        num_hidden_layers=asked.layers,
        num_attention_heads=asked.heads,
        intermediate_size=4 * asked.width,
        attention_probs_dropout_prob=0.0,
        num_labels=1 + max(texts["labels"]),
    )
    rows = [
        {"input_ids": i, "labels": n}
        for i, n in zip(texts["ids"], texts["labels"], strict=True)
    ]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(asked.data / "tokenizer.json"),
        pad_token="<pad token>",
        padding_side="right",
    )
    train(
        asked,
        BertForSequenceClassification(config),
        rows,
        DataCollatorWithPadding(tokenizer),
    )


def train(
    asked: argparse.Namespace,
    model: PreTrainedModel,
    rows: list[dict[str, object]],
    collator: DataCollatorWithPadding | None = None,
) -> None:
    """The Trainer at its defaults, but that it writes no files and asks nobody."""
    settings = TrainingArguments(
        output_dir=str(asked.data / "trainer"),
        per_device_train_batch_size=asked.batch,
        max_steps=1_000_000,
        bf16=asked.bf16,
        train_sampling_strategy="group_by_length" if asked.grouped else "random",
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    Trainer(model, settings, train_dataset=rows, data_collator=collator).train()


def main() -> None:
    """Train until the meter ends the process."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    models = {"gpt": train_gpt, "gpt2": train_gpt2, "bert": train_bert}
    parser.add_argument("model", choices=models)
    parser.add_argument("--data", type=Path, required=True)
    for name in ("entries", "layers", "width", "heads", "context", "batch", "threads"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument(
        "--grouped", action="store_true", help="texts of like length beside each other"
    )
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    models[asked.model](asked)


if __name__ == "__main__":
    main()
