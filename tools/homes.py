"""Language models and classifiers that have a home in a class of transformers: how its name begins,
a recipe, and the settings that make it fit.
"""

UNBIASED = "model.projection_bias=false"
UNSCALED = "model.scale_embeddings=false"
LEARNED = 'model.positions="learned"'
PLAIN = ("model.ngrams=1", "model.match_lengths=[]")
LLAMA = ("lm-modern", "model.query_key_norm=false")
# pieces of whole characters: of bytes that are none, each reader makes another text
PIECES = ('tokenizer.kind="bpe"', 'tokenizer.words="unicode"')
GPT2 = ("causal-lm", *PIECES, "model.norm_first=true", UNBIASED)
LAST = ("causal-lm", *PIECES)
WRITERS = {
    "the recipe of Qwen3": ("Qwen3", "lm-modern"),
    "Qwen3 scaled": ("Qwen3", "lm-modern", "model.scale_embeddings=true"),
    "Llama": ("Llama", *LLAMA, "decoding.repetition_penalty=1.3"),
    "Llama with biases": ("Llama", *LLAMA, "model.bias=true", UNBIASED),
    "Llama with geglu": ("Llama", *LLAMA, 'model.activation="geglu"'),
    "Llama without a gate": ("Arcee", *LLAMA, 'model.activation="relu2"'),
    "tiny-shakespeare": ("Starcoder2", "tiny-shakespeare", *PLAIN),
    "Starcoder2": (
        "Starcoder2",
        "lm-modern",
        'model.norm="layer"',
        'model.activation="gelu"',
        "model.query_key_norm=false",
        "model.bias=true",
        UNBIASED,
    ),
    "StableLM": (
        "StableLm",
        *LLAMA,
        'model.norm="layer"',
        "model.num_key_value_heads=4",
    ),
    "a norm around each sublayer": (
        "Glm4",
        *LLAMA,
        "model.sandwich_norm=true",
        "model.head_dim=6",
        'model.activation="geglu"',
    ),
    "GPT-2": ("GPT2", *GPT2, LEARNED, UNSCALED, "model.tie_embeddings=true"),
    "GPT-2 of computed positions": ("GPT2", *GPT2, "model.tie_embeddings=true"),
    "GPT-2 without biases": ("GPT2", *GPT2[:-1], "model.bias=false", UNSCALED),
    "causal-lm": ("Marian", *LAST, UNBIASED),
    "causal-lm with learned positions": ("OPT", *LAST, UNBIASED, LEARNED, UNSCALED),
    "a norm of embeddings": ("BertGeneration", *LAST, "model.embedding_norm=true"),
    "a norm of embeddings, tied": (
        "BertGeneration",
        *LAST,
        "model.embedding_norm=true",
        "model.tie_embeddings=true",
        UNBIASED,
        UNSCALED,
    ),
}

FIRST = 'model.pooling="first"'
SEVERAL = 'data.label_separator=","'
BERT = ("imdb-classifier", FIRST, "model.embedding_norm=true")
CLASSIFIERS = {
    "the recipe of UltraBERT": ("Ultrabert", "classify-modern"),
    "UltraBERT of first states": (
        "Ultrabert",
        "classify-modern",
        FIRST,
        SEVERAL,
        "model.bias=true",
        'model.activation="swiglu"',
        "model.num_key_value_heads=2",
    ),
    "BERT": ("Bert", *BERT),
    "BERT with learned positions": (
        "Bert",
        *BERT,
        SEVERAL,
        'model.positions="learned"',
        'model.activation="gelu"',
        "model.bias=false",
    ),
    "MegatronBERT": ("MegatronBert", "imdb-classifier", FIRST, "model.norm_first=true"),
}
