"""A few sentences of `everyday` to try a model of it with: of its test, so none was trained on."""

EXAMPLES: tuple[dict[str, str], ...] = (
    {
        "en": "The farmer is reading an article.",
        "zh": "农民正在读一篇文章。",
        "de": "Der Bauer liest gerade einen Artikel.",
    },
    {
        "en": "Is my son waiting for his mother now?",
        "zh": "我儿子现在在等他妈妈吗？",
        "de": "Wartet mein Sohn jetzt auf seine Mutter?",
    },
    {
        "en": "My friend wants to lend his father an old novel.",
        "zh": "我朋友想借给他爸爸一本旧小说。",
        "de": "Mein Freund möchte seinem Vater einen alten Roman leihen.",
    },
    {
        "en": "Before the secretary met her teacher, she fed the dog.",
        "zh": "秘书见她老师以前，先喂了狗。",
        "de": "Bevor die Sekretärin ihren Lehrer getroffen hat, hat sie den Hund gefüttert.",
    },
)
