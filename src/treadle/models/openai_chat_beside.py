"""What a reply of Chat Completions has beside its text and its function calls: images, sound, and calls of other kinds.

Pure. None of it goes back: most servers refuse it there, and a sound is kept for an hour. Neighbour:
`treadle.models.openai_chat_stream`, which reads the rest.
"""

from typing import Any, Final

from treadle.kernel.messages import Json
from treadle.models.codec import json_bytes
from treadle.models.contents import joined_base64
from treadle.models.counts import fields_in, list_in, name_in

CITED: Final = ("annotations", "citations", "search_results")
"""Where servers say what a reply rests on: OpenAI and OpenRouter, xAI, Perplexity."""


class Beside:
    """What has come of it so far; `cited` is what it rests on, and `speaks` whether its text is what its sound says."""

    __slots__ = ("_audio", "_custom", "_images", "_known", "_sound", "_transcript", "cited", "speaks")

    def __init__(self) -> None:
        self.speaks = False
        self._images: list[Json] = []
        self._audio: Json = {}
        self._sound: list[str] = []
        self._transcript: list[str] = []
        self._custom: list[Json] = []
        self.cited: Json = {}
        self._known: set[bytes] = set()

    def see(self, delta: Json) -> None:
        """Takes in the images of a piece, or of the whole reply told again."""
        self._images += [image for image in list_in(delta, "images") if image not in self._images]
        self.cite(delta)

    def cite(self, told: Json) -> None:
        """Takes in what the reply rests on, as a chunk or a piece tells it, many of them all of it again."""
        for name in CITED:
            cited = told.get(name)
            for one in cited if isinstance(cited, list) else ():
                if (known := json_bytes([name, one])) not in self._known:
                    self._known.add(known)
                    self.cited.setdefault(name, []).append(one)

    def hear(self, delta: Json) -> str:
        """Takes in what a piece has of sound; what is said in it."""
        audio = fields_in(delta, "audio")
        if not any(audio.values()):
            return ""
        sound, spoken = name_in(audio, "data"), name_in(audio, "transcript")
        self._audio |= {name: value for name, value in audio.items() if value is not None}
        self._sound += [sound] if sound else []
        self._transcript += [spoken] if spoken else []
        return spoken

    def takes(self, entry: Any) -> bool:
        """Whether an entry of the calls is one of a custom tool, or a piece of one, and taken in here."""
        custom = entry.get("custom")
        # A gateway may send all kinds of calls at once, with nothing in those that it is none of.
        if not isinstance(custom, dict) or not any(custom.values()) or any(fields_in(entry, "function").values()):
            return False
        if entry.get("id") or not self._custom:
            self._custom.append({**entry, "custom": {**custom}})
        else:
            last = self._custom[-1]["custom"]
            last["input"] = name_in(last, "input") + name_in(custom, "input")
        return True

    def whole(self) -> Json:
        """All of it, under the names that it has in a message; "custom" are the calls of custom tools."""
        audio = dict(self._audio)
        if self._sound:
            try:
                audio["data"] = joined_base64(self._sound)
            except ValueError:
                audio["data"] = "".join(self._sound)
        if self._transcript:
            audio["transcript"] = "".join(self._transcript)
        found: Json = {"images": self._images, "audio": audio, "custom": self._custom}
        return {name: value for name, value in found.items() if value}
