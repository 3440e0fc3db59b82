"""Write a language model of some random numbers, which llama.cpp serves. Run in the environment of scripts/llama-server.

python tiny_model.py FILE
"""

import sys

import gguf
import numpy as np

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 32, 4, 2, 64, 4096
CONTROL, BYTE, NORMAL, UNKNOWN = 3, 6, 1, 2
LETTERS = [b"\xe2\x96\x81", *(bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz0123456789.")]
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant: "


def main(path: str) -> None:
    random = np.random.default_rng(1)
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256)), *LETTERS]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(LETTERS)]
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(CONTEXT)
    file.add_embedding_length(WIDTH)
    file.add_block_count(LAYERS)
    file.add_feed_forward_length(INNER)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // HEADS)
    file.add_vocab_size(len(tokens))
    file.add_tokenizer_model("llama")
    file.add_token_list(tokens)
    file.add_token_scores([-float(number) for number in range(len(tokens))])
    file.add_token_types(kinds)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    file.add_chat_template(TEMPLATE)

    def weights(name: str, *shape: int) -> None:
        file.add_tensor(f"{name}.weight", random.normal(0, 0.5, shape).astype(np.float32))

    weights("token_embd", len(tokens), WIDTH)
    answers = random.normal(0, 3, (len(tokens), WIDTH)).astype(np.float32)
    answers[: 3 + 256] = 0  # letters are likelier than bytes, so that most answers are text
    file.add_tensor("output.weight", answers)
    file.add_tensor("output_norm.weight", np.ones(WIDTH, dtype=np.float32))
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            file.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(WIDTH, dtype=np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{layer}.{name}", WIDTH, WIDTH)
        weights(f"blk.{layer}.ffn_gate", INNER, WIDTH)
        weights(f"blk.{layer}.ffn_up", INNER, WIDTH)
        weights(f"blk.{layer}.ffn_down", WIDTH, INNER)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


if __name__ == "__main__":
    main(sys.argv[1])
