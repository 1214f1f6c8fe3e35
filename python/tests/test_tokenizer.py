"""Tokenizers of the library against Hugging Face's: the same merges, the same numbers both ways."""

import ctypes
import json
import random

import pytest

from basin._library import BasinError, check, ffi, lib, owned

tokenizers = pytest.importorskip("tokenizers")

TEXT = (
    "The energy goes down, and the tokens go down with it. Don't we'll see? They're there, I'm "
    "sure; he'd say it's 1234567 times.\n\n  Indented, and  double  blanks.\t\tTabs.\n"
    "Über die Energie: größer, kleiner, größer. 日本語の文字と文字。😀😀😀\n"
) * 3
WORDS = (
    "'s 'S 't 're 'VE 'll 'LL the energy The don't we'll 123 4567 ٣٤ Ⅷ ½ é e\u0301 ß ſ 'ſ 日本語 "
    "한국 😀 👩\u200d👩 … ! ?! _ € \u200b \ufeff <end> <l> <r> zqx"
)
BLANKS = [" ", "  ", "   ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u0085", "\x1c", "\x00"]
PARTS = WORDS.split(" ") + BLANKS
LLAMA = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def free(pointer):
    ctypes.CDLL(None).free(ctypes.c_void_p(int(ffi.cast("intptr_t", pointer))))


def make(function, *arguments):
    out = ffi.new("basin_tokenizer **")
    check(function, out, *arguments)
    return owned(out[0], lib.basin_tokenizer_free)


def trained(text, vocabulary):
    data = text.encode()
    return make(lib.basin_tokenizer_train, data, len(data), vocabulary, ffi.NULL)


def parsed(text):
    return make(lib.basin_tokenizer_parse, text.encode(), b"tokenizer.json")


def printed(tokenizer):
    out = ffi.new("char **")
    check(lib.basin_tokenizer_print, out, tokenizer)
    text = ffi.string(out[0]).decode()
    free(out[0])
    return text


def encoded(tokenizer, text):
    data, ids, count = text.encode(), ffi.new("int32_t **"), ffi.new("int64_t *")
    check(lib.basin_tokenizer_encode, ids, count, ffi.NULL, tokenizer, data, len(data))
    numbers = list(ids[0][0 : count[0]])
    free(ids[0])
    return numbers


def decoded(tokenizer, ids):
    out, length = ffi.new("char **"), ffi.new("size_t *")
    check(lib.basin_tokenizer_decode, out, length, tokenizer, ffi.new("int32_t[]", ids), len(ids))
    data = ffi.buffer(out[0], length[0])[:]
    free(out[0])
    return data


def random_text(rng):
    if rng.random() < 0.7:
        return "".join(rng.choice(PARTS) for _ in range(rng.randint(0, 12)))
    points = [rng.randrange(rng.choice([0x80, 0x800, 0x3000, 0x110000])) for _ in range(20)]
    return "".join(chr(p) for p in points if not 0xD800 <= p < 0xE000)


@pytest.fixture(scope="module")
def base():
    return json.loads(printed(trained(TEXT, 320)))


def test_training_finds_the_same_merges(base):
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=alphabet, show_progress=False
    )
    theirs.train_from_iterator([TEXT], trainer)
    model = json.loads(theirs.to_str())["model"]
    assert base["model"]["vocab"] == model["vocab"]
    assert base["model"]["merges"] == model["merges"]


def added(base):
    def token(number, content, **flags):
        start = {"id": len(base["model"]["vocab"]) + number, "content": content, "special": True}
        names = ("single_word", "lstrip", "rstrip", "normalized")
        return {**start, **dict.fromkeys(names, False), **flags}

    base["added_tokens"] = [
        token(0, "<end>"),
        token(1, "<l>", lstrip=True),
        token(2, "<r>", rstrip=True, normalized=True),
        token(3, "zqx", normalized=True, special=False),
        token(4, "日本"),
    ]


def split(base):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    regex = {"type": "Split", "pattern": {"Regex": LLAMA}, "behavior": "Isolated", "invert": False}
    parts = [regex, {**level, "use_regex": False}]
    base["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}


def around(base):
    end = {"SpecialToken": {"id": "e", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    tokens = {"e": {"id": "e", "ids": [base["model"]["vocab"]["e"]], "tokens": ["e"]}}
    base["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [end, text],
        "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": tokens,
    }


CHANGES = {
    "gpt2": lambda base: None,
    "llama": split,
    "around": around,
    "added": added,
    "prefix": lambda base: base["pre_tokenizer"].update(add_prefix_space=True),
    "one word": lambda base: base["pre_tokenizer"].update(use_regex=False),
    "whole words": lambda base: base["model"].update(
        ignore_merges=True, merges=base["model"]["merges"][::2]
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_numbers_are_the_same(base, change):
    rng = random.Random(change)
    changed = json.loads(json.dumps(base))
    CHANGES[change](changed)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(changed))
    ours = parsed(json.dumps(changed))
    again = tokenizers.Tokenizer.from_str(printed(ours))
    for _ in range(1000):
        text = random_text(rng)
        ids = encoded(ours, text)
        assert ids == theirs.encode(text, add_special_tokens=False).ids, repr(text)
        assert ids == again.encode(text, add_special_tokens=False).ids, repr(text)
        assert theirs.encode(text).ids == again.encode(text).ids
        if change not in ("added", "prefix"):
            assert decoded(ours, ids) == text.encode()


def test_characters_and_bytes():
    data = TEXT.encode()
    characters = make(lib.basin_tokenizer_characters, data, len(data))
    for ours in (characters, make(lib.basin_tokenizer_bytes)):
        theirs = tokenizers.Tokenizer.from_str(printed(ours))
        ids = encoded(ours, TEXT)
        assert ids == theirs.encode(TEXT).ids
        assert theirs.decode(ids) == TEXT


@pytest.mark.parametrize("model", ["WordPiece", "Unigram", "WordLevel"])
def test_other_models_are_refused(model):
    theirs = tokenizers.Tokenizer(getattr(tokenizers.models, model)())
    with pytest.raises(BasinError, match=f"model {model} is not supported"):
        parsed(theirs.to_str())
