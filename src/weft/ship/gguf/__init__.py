"""Language models in GGUF files, which llama.cpp and what is built on it read."""
