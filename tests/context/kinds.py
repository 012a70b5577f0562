"""Kinds of text that runs are full of, made up at random: what data looks like, and what people write."""

import base64
import json
import string
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from uuid import UUID

ROOT = Path(__file__).resolve().parents[2]
PROSE = (ROOT / "LICENSE").read_text(encoding="utf-8")
MARKDOWN = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = (ROOT / "src/treadle/agent.py").read_text(encoding="utf-8")
WORDS = sorted({word.lower() for word in PROSE.split() if word.isalpha() and len(word) > 2})
LETTERS, PUNCTUATION = string.ascii_letters, string.punctuation

LANGUAGES = {
    "German": "Die Überprüfung hängt von der Größe der Datei ab, und die Zuständigkeit liegt bei der Geschäftsführung.",
    "French": "L'été dernier, les élèves ont étudié l'économie française; où qu'ils aillent, ils y réfléchissent.",
    "Polish": "Zażółć gęślą jaźń, ponieważ wszystkie źródła są już dostępne, żebyśmy mogli przygotować sprawozdanie.",
    "Vietnamese": "Chúng tôi đã xử lý yêu cầu của bạn và sẽ gửi kết quả trong thời gian sớm nhất.",
    "Russian": "Скорость проверки зависит от размера файла, а ответственность за изменения лежит на руководстве.",
    "Greek": "Η ταχύτητα του ελέγχου εξαρτάται από το μέγεθος του αρχείου.",
    "Hebrew": "מהירות הבדיקה תלויה בגודל הקובץ, והאחריות לשינויים מוטלת על ההנהלה.",
    "Arabic": "تعتمد سرعة التحقق على حجم الملف، وتقع مسؤولية التغييرات على عاتق الإدارة.",
    "Hindi": "जाँच की गति फ़ाइल के आकार पर निर्भर करती है, और परिवर्तनों की ज़िम्मेदारी प्रबंधन की होती है।",
    "Thai": "ความเร็วในการตรวจสอบขึ้นอยู่กับขนาดของไฟล์",
    "Tamil": "சரிபார்ப்பின் வேகம் கோப்பின் அளவைப் பொறுத்தது.",
    "Georgian": "შემოწმების სიჩქარე დამოკიდებულია ფაილის ზომაზე.",
    "Amharic": "የማረጋገጫው ፍጥነት በፋይሉ መጠን ላይ የተመሠረተ ነው።",
    "Korean": "검증 속도는 파일의 크기에 따라 달라지며, 변경 사항에 대한 책임은 경영진에게 있습니다.",
    "Japanese": "検証の速度はファイルのサイズによって異なり、変更に対する責任は経営陣にあります。",
    "Chinese": "验证的速度取决于文件的大小，变更的责任由管理层承担。驗證的速度取決於檔案的大小。",
    "emoji": "😀🚀🔥👨‍👩‍👧‍👦🏳️‍🌈👍🏽✅❌⚠️📊🇩🇪🇯🇵🤷‍♀️🧑🏿‍💻💯🎉",
    "combining": "Z̵̛a̶͠l̷g̸o̴ t̷e̸x̵t̴ e\u0301a\u0300u\u0308n\u0303",
    "symbols": "→ ⇒ ≤ ≥ ≠ ∑ √ ∞ ± × α β γ • … – — “quoted” ‘x’ € £ ¥ © ™ ° § ½ ²",
    "boxes": "┌──────┬──────┐\n│ name │ 12.5 │\n└──────┴──────┘ ███▓▒░",
}


def cut(rnd: Random, text: str, size: int = 500) -> str:
    start = rnd.randrange(max(1, len(text) - size))
    return text[start : start + size]


def letters(rnd: Random, alphabet: str, size: int) -> str:
    return "".join(rnd.choice(alphabet) for _ in range(size))


def number(rnd: Random) -> str:
    match rnd.randrange(6):
        case 0:
            return str(rnd.randrange(10 ** rnd.randrange(1, 12)))
        case 1:
            return f"{rnd.random() * 10 ** rnd.randrange(8):.{rnd.randrange(1, 8)}f}"
        case 2:
            return f"{rnd.randrange(10**9):,}"
        case 3:
            return f"-{rnd.random() * 1e5:.2f}"
        case 4:
            return repr(rnd.random())
        case _:
            return f"{rnd.random():.3e}"


def moment(rnd: Random) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=rnd.randrange(10**8))


def row(rnd: Random) -> dict[str, object]:
    return {
        "id": rnd.randrange(10**6),
        "company": rnd.randrange(1000, 9999),
        "name": rnd.choice(WORDS).capitalize(),
        "amount": round(rnd.random() * 1e6, 2),
        "date": moment(rnd).date().isoformat(),
        "ok": rnd.random() < 0.5,
        "note": None,
    }


def identifier(rnd: Random) -> str:
    match rnd.randrange(3):
        case 0:
            return "_".join(rnd.sample(WORDS, 2))
        case 1:
            return "".join(word.capitalize() for word in rnd.sample(WORDS, 3))
        case _:
            return letters(rnd, string.ascii_lowercase, 6)


def many(between: str, one: Callable[[Random], str], count: int = 8) -> Callable[[Random], str]:
    return lambda rnd: between.join(one(rnd) for _ in range(count))


def uuid(rnd: Random) -> str:
    return str(UUID(int=rnd.getrandbits(128)))


def url(rnd: Random) -> str:
    host, path, key = rnd.sample(WORDS, 3)
    token = letters(rnd, LETTERS + string.digits, 8)
    return f"https://www.{host}.com/{path}/{rnd.randrange(10**6)}?{key}={number(rnd)}&t={token}#%20{rnd.randrange(99)}"


def turned(text: str) -> Callable[[Random], str]:
    """The text, begun elsewhere."""

    def from_somewhere(rnd: Random) -> str:
        words = text.split(" ")
        start = rnd.randrange(len(words))
        return " ".join(words[start:] + words[:start])

    return from_somewhere


WRITTEN: dict[str, Callable[[Random], str]] = {
    "prose": lambda rnd: cut(rnd, PROSE),
    "Markdown": lambda rnd: cut(rnd, MARKDOWN),
    "code": lambda rnd: cut(rnd, CODE),
    "capitals": lambda rnd: cut(rnd, PROSE).upper(),
    "identifiers": many(" ", identifier, 40),
    "paths": many("\n", lambda rnd: f"/usr/lib/{identifier(rnd)}/{identifier(rnd)}.py:{rnd.randrange(999)}"),
    "addresses": many("\n", lambda rnd: f"{'.'.join(rnd.sample(WORDS, 2))}{rnd.randrange(99)}@{rnd.choice(WORDS)}.com"),
    "log": many("\n", lambda rnd: f"{moment(rnd).isoformat()} [INFO] {identifier(rnd)}: {cut(rnd, PROSE, 40)!r}"),
    "SQL": lambda rnd: f"SELECT t.{identifier(rnd)}, SUM(u.{identifier(rnd)}) FROM {identifier(rnd)} t WHERE d > 4711",
    "repeated words": lambda rnd: " ".join([rnd.choice(WORDS)] * 50),
}
FIGURES: dict[str, Callable[[Random], str]] = {
    "JSON": lambda rnd: json.dumps([row(rnd) for _ in range(5)]),
    "compact JSON": lambda rnd: json.dumps([row(rnd) for _ in range(5)], separators=(",", ":")),
    "indented JSON": lambda rnd: json.dumps([row(rnd) for _ in range(5)], indent=4),
    "JSON in JSON": lambda rnd: json.dumps(json.dumps([row(rnd) for _ in range(3)])),
    "escapes": lambda rnd: json.dumps(rnd.choice(list(LANGUAGES.values()))),
    "CSV": many("\n", lambda rnd: ",".join(map(str, row(rnd).values()))),
    "CSV of numbers": many("\n", many(",", number, 6)),
    "TSV of numbers": many("\n", many("\t", number, 6)),
    "numbers": many(" ", number, 40),
    "digits": lambda rnd: letters(rnd, string.digits, rnd.randrange(1, 300)),
    "bits": lambda rnd: " ".join(letters(rnd, "01", 60)),
    "telephones": many("\n", lambda rnd: f"+{rnd.randrange(99)} ({rnd.randrange(999)}) {rnd.randrange(10**6)}-{7}"),
    "IP addresses": many(" ", many(".", lambda rnd: str(rnd.randrange(256)), 4), 12),
    "times": many("\n", lambda rnd: moment(rnd).isoformat()),
    "UUIDs": many("\n", uuid),
    "capital UUIDs": many(",", lambda rnd: uuid(rnd).upper()),
    "hex": lambda rnd: rnd.randbytes(rnd.randrange(10, 200)).hex(),
    "hex with colons": lambda rnd: rnd.randbytes(60).hex(":"),
    "base64": lambda rnd: base64.b64encode(rnd.randbytes(rnd.randrange(10, 400))).decode(),
    "lines of base64": lambda rnd: base64.encodebytes(rnd.randbytes(300)).decode(),
    "base32": lambda rnd: base64.b32encode(rnd.randbytes(200)).decode(),
    "keys": many("\n", lambda rnd: "sk-" + letters(rnd, LETTERS + string.digits, 40), 4),
    "URLs": many("\n", url, 6),
    "Markdown tables": many("\n", lambda rnd: f"| {rnd.randrange(10**4)} | {number(rnd)} | {moment(rnd).date()} |"),
    "padded tables": many("\n", lambda rnd: f"{rnd.choice(WORDS):<16}{number(rnd):>18}{number(rnd):>14}"),
    "XML": many("", lambda rnd: f'<v t="{rnd.randrange(9)}">{number(rnd)}</v>'),
    "YAML": many("\n", lambda rnd: f"{'  ' * rnd.randrange(4)}- {identifier(rnd)}: {number(rnd)}"),
    "codes": many(
        " ", lambda rnd: f"{letters(rnd, LETTERS.upper(), 2)}{rnd.randrange(10**4):04}-{letters(rnd, 'AB12', 5)}"
    ),
    "chess": many(" ", lambda rnd: f"{rnd.randrange(40)}. N{letters(rnd, 'abcdefgh', 1)}{rnd.randrange(1, 9)} Rxe4"),
}
ODD: dict[str, Callable[[Random], str]] = {
    "random words": many(" ", lambda rnd: letters(rnd, string.ascii_lowercase, rnd.randrange(1, 12)), 20),
    "random capitals": many(",", lambda rnd: letters(rnd, string.ascii_uppercase, rnd.randrange(2, 6)), 30),
    "random ASCII": lambda rnd: letters(rnd, LETTERS + string.digits + PUNCTUATION + " ", 300),
    "punctuation": lambda rnd: letters(rnd, PUNCTUATION, 200),
    "rules": lambda rnd: "".join(rnd.choice("-=*_#.~") * rnd.randrange(1, 40) + "\n" for _ in range(8)),
    "space": lambda rnd: "".join(rnd.choice([" " * rnd.randrange(1, 90), "\n" * 3, "\t" * 4]) for _ in range(12)),
    "controls": lambda rnd: letters(rnd, "\x00\x01\x07\x1b[0m\x7f", 40),
    "DNA": lambda rnd: letters(rnd, "ACGT", 300),
}
FOREIGN = {name: turned(text) for name, text in LANGUAGES.items()}
KINDS = {**WRITTEN, **FIGURES, **ODD, **FOREIGN}
