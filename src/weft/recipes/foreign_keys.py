"""The names that other programs give to the keys of a recipe, to suggest a key for each."""

# Of several keys, the first that the recipe has is suggested; for a name in several lines, a key of
# each is.
NAMES_ELSEWHERE = {
    "training.max_steps": (
        "epochs epoch num_epochs n_epochs max_epochs max_epoch num_train_epochs "
        "training_epochs steps num_steps n_steps train_steps training_steps "
        "max_train_steps num_train_steps iterations iters max_iters max_iter "
        "n_iters max_update max_updates num_updates"
    ),
    "training.save_every": (
        "checkpoint_every checkpoint_steps checkpoint_interval checkpoint_freq "
        "save_steps save_interval save_freq save_frequency save_checkpoint_steps "
        "save_interval_updates"
    ),
    "training.keep_checkpoints": (
        "save_total_limit keep_last keep_checkpoint max_to_keep keep_last_epochs"
    ),
    "training.eval_every": (
        "eval_steps eval_interval eval_freq evaluate_every valid_every valid_freq "
        "valid_steps validation_interval validate_every val_every val_interval "
        "val_check_interval"
    ),
    "training.patience": (
        "early_stopping early_stopping_patience early_stop stop_patience"
    ),
    "training.learning_rate": (
        "lr learningrate learn_rate initial_lr init_lr base_lr peak_lr max_lr"
    ),
    "training.schedule": (
        "scheduler lr_scheduler lr_scheduler_type lr_schedule lr_decay decay_method "
        "decay"
    ),
    "training.warmup_steps": (
        "warmup warm_up warmup_updates warmup_iters num_warmup_steps n_warmup_steps "
        "lr_warmup"
    ),
    "training.optimizer": "optim optimiser opt",
    "training.betas": "adam_betas beta beta1 beta2 beta_1 beta_2 adam_beta1 adam_beta2",
    "training.eps": "adam_eps adam_epsilon epsilon",
    "training.weight_decay": "wd l2 l2_reg regularization",
    "training.grad_clip_norm": (
        "clip clip_norm grad_clip max_grad_norm gradient_clip gradient_clip_val "
        "clip_grad"
    ),
    "training.grad_accum_steps": (
        "gradient_accumulation_steps accumulate grad_accum accum_count update_freq"
    ),
    "training.label_smoothing": "smoothing label_smoothing_factor ls",
    "training.ema_decay": "ema moving_average exponential_smoothing",
    "training.precision": "fp16 bf16 amp mixed_precision half dtype float16 bfloat16",
    "training.threads": "num_threads n_threads cpu_threads nthreads",
    "training.seed": "random_seed manual_seed rng_seed random_state",
    "training.activation_checkpointing": (
        "gradient_checkpointing checkpoint_activations"
    ),
    "training.class_weights": "class_weight label_weights pos_weight",
    "batches.batch_size": (
        "batch bs bsz batchsize mini_batch minibatch train_batch_size "
        "per_device_train_batch_size"
    ),
    "batches.tokens_per_batch": "max_tokens batch_tokens tokens mini_batch_words",
    "decoding.max_new_tokens": (
        "max_tokens max_gen_len max_new max_new_token max_generated_tokens num_tokens"
    ),
    "model.d_model": (
        "hidden hidden_size hidden_dim hidden_units embed_dim embedding_dim "
        "embedding_size emb_dim dim emb_size n_embd d_embed dim_model dim_emb width "
        "model_dim encoder_embed_dim word_vec_size"
    ),
    "model.d_hidden model.d_model": "rnn_size d_hid hidden_size",
    "model.d_ff": (
        "ffn ffn_dim ff_dim ff_size ffn_size intermediate_size dim_feedforward "
        "feedforward_dim d_inner ffn_hidden ffn_embed_dim transformer_ff n_inner "
        "mlp_dim encoder_ffn_embed_dim"
    ),
    "model.num_heads": (
        "heads n_head n_heads nhead nheads num_head num_attention_heads attention_heads"
    ),
    "model.num_key_value_heads": "kv_heads n_kv_heads num_kv_heads",
    "model.num_encoder_layers": (
        "layers n_layer n_layers num_layers num_layer num_hidden_layers depth "
        "num_blocks enc_layers encoder_layers enc_depth n_encoder_layers"
    ),
    "model.num_decoder_layers": (
        "layers n_layer n_layers num_layers num_layer num_hidden_layers depth "
        "num_blocks dec_layers decoder_layers dec_depth n_decoder_layers"
    ),
    "model.dropout": (
        "drop dropout_rate dropout_prob dropout_p p_dropout hidden_dropout "
        "resid_pdrop hidden_dropout_prob residual_dropout"
    ),
    "model.attention_dropout": "attn_dropout attn_pdrop attention_probs_dropout_prob",
    "model.norm_first": "pre_norm prenorm pre_ln normalize_before",
    "model.activation": "act activation_fn activation_function hidden_act nonlinearity",
    "model.embedding_norm": (
        "emb_norm embed_norm embeddings_norm layernorm_embedding normalize_embedding"
    ),
    "model.projection_bias": "output_bias lm_head_bias head_bias logits_bias",
    "model.tie_embeddings": (
        "tied tie_weights tie_word_embeddings tied_embeddings share_embeddings "
        "weight_tying"
    ),
    "model.positions": (
        "pos_encoding positional_encoding position_embedding position_encoding rope"
    ),
    "tokenizer.vocab_size": (
        "vocab vocabulary vocab_size vocabulary_size n_vocab num_merges bpe_size "
        "bpe_merges"
    ),
    "tokenizer.src.vocab_size": "src_vocab_size",
    "tokenizer.tgt.vocab_size": "tgt_vocab_size",
    "tokenizer.kind": (
        "tokenizer tokenizer_type tokenization subword bpe sentencepiece spm"
    ),
    "tokenizer.leading_space": (
        "add_prefix_space add_dummy_prefix prefix_space dummy_prefix add_space"
    ),
    "tokenizer.lowercase": "lower lc do_lower_case uncased",
    "tokenizer.min_frequency": "min_freq min_count",
    "batches.window_len data.max_len": (
        "max_length max_seq_len max_seq_length seq_len sequence_length seq_length "
        "max_sequence_length block_size bptt context context_length ctx n_ctx"
    ),
    "data.max_len": (
        "max_src_len max_tgt_len max_source_length max_target_length "
        "max_sentence_length"
    ),
    "data.src_lang": "src source source_lang source_language src_language",
    "data.tgt_lang": (
        "tgt target trg target_lang target_language tgt_language language languages "
        "langs lang"
    ),
    "data.src_lang data.lang": "language languages langs lang",
    "data.dev_size data.dev_share": (
        "valid_size val_size validation_size validation_split val_split eval_size"
    ),
    "data.test_size data.test_share": "test_split test_fraction",
    "decoding.beam_size": "beam beams num_beams n_beams beam_width",
    "decoding.length_penalty": "lenpen len_penalty length_alpha",
    "decoding.temperature": "temp sampling_temperature",
    "decoding.repetition_penalty": "rep_penalty repeat_penalty",
}
