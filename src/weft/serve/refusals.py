"""The reasons why the server does not do what it was asked, whatever dialect says them."""

from collections.abc import Iterable

from weft.errors import WeftError


class Refusal(WeftError):
    """A request that is answered with a reason.

    `status` is that of HTTP, `code` a short name that never changes. `param` names the field at
    fault, where one is. The message never repeats what the client sent, but for codes of languages
    and names of models and fields that are short and plain.
    """

    status = 400
    code = "invalid_request"

    def __init__(self, message: str, param: str | None = None) -> None:
        """Set the message, one line, and the field that it is about."""
        super().__init__(message)
        self.message = message
        self.param = param


class InvalidRequest(Refusal):
    """A field that is missing, of another type or out of range."""


class UnknownLanguage(Refusal):
    """A language that no model has."""

    code = "unknown_language"

    def __init__(self, language: str, param: str) -> None:
        """Name the language's code."""
        super().__init__(f"{shown(language)} is not supported", param)
        self.language = language


class OtherLanguages(Refusal):
    """A language that is not one of the model that is named."""

    code = "other_languages"

    def __init__(self, model: str, src: str, tgt: str, param: str) -> None:
        """Say what the model translates."""
        super().__init__(f"the model {model} translates {src} to {tgt}", param)


class UnknownField(InvalidRequest):
    """A field that a route does not have."""

    code = "unknown_field"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        """Name the field, where its name is one, and those that there are."""
        named = name if name.isidentifier() and name == shown(name) else None
        listed = f"the fields here are {', '.join(known)}"
        super().__init__(
            f"there is no field {named}; {listed}" if named else listed, named
        )


class Undetected(Refusal):
    """A text whose language is to be found out, where nothing tells the sources apart."""

    code = "undetected_language"

    def __init__(self) -> None:
        """Say what helps."""
        super().__init__(
            "the models cannot tell the language of the text; give the source", "source"
        )


class UnknownPair(Refusal):
    """Two languages that no model, and no route over a third language, joins."""

    code = "unknown_pair"

    def __init__(self, src: str, tgt: str) -> None:
        """Name the two codes."""
        super().__init__(
            f"no model translates {shown(src)} to {shown(tgt)}; GET /languages lists the pairs",
            "target",
        )
        self.src = src
        self.tgt = tgt


class UnknownModel(Refusal):
    """A name that no model has."""

    status = 404
    code = "model_not_found"

    def __init__(self, name: str, wanted: str = "") -> None:
        """Name the model; `wanted` is the task that was asked of it, where it has another."""
        reason = f" {wanted}" if wanted else ""
        super().__init__(
            f"there is no{reason} model {shown(name)}; GET /v1/models lists them",
            "model",
        )
        self.name = name


class NoModelFor(UnknownModel):
    """A task that no model has, where the request leaves the choice of the model."""

    def __init__(self, kind: str, others: Iterable[str]) -> None:
        """Name the task, and those of the models."""
        known = " and ".join(dict.fromkeys(others))
        message = f"no model here is for {kind}; those that are here are for {known}"
        Refusal.__init__(self, message, "model")
        self.name = ""


class Impossible(Refusal):
    """A thing that this kind of model cannot give."""

    code = "unsupported"


class TooLarge(Refusal):
    """A body, a text or a list above a limit."""

    status = 413
    code = "too_large"


class Unauthorized(Refusal):
    """A key that is missing or unknown."""

    status = 401
    code = "unauthorized"


class Forbidden(Refusal):
    """A thing that is switched off, or a host that is not served."""

    status = 403
    code = "forbidden"


_SOON = 5.0  # seconds: to come again at once would be too early


class Overloaded(Refusal):
    """More work than can be done in time; `retry_after` seconds later there is room again."""

    status = 503
    code = "overloaded"

    def __init__(self, retry_after: float) -> None:
        """Say when to come again."""
        super().__init__("the server is busy; try again later")
        self.retry_after = retry_after


class TooManyRequests(Refusal):
    """More than the limit of this key or address."""

    status = 429
    code = "rate_limited"

    def __init__(self, retry_after: float) -> None:
        """Say when to come again."""
        super().__init__("too many requests; try again later")
        self.retry_after = retry_after


class UsedUp(Refusal):
    """More than a key may use in a day; `retry_after` seconds later the next one begins."""

    status = 429
    code = "used_up"

    def __init__(self, message: str, retry_after: float) -> None:
        """Say what is used up, and when to come again."""
        super().__init__(message)
        self.retry_after = retry_after


class TooLate(Refusal):
    """Work that was not done before its deadline."""

    status = 503
    code = "deadline"
    retry_after = _SOON

    def __init__(self) -> None:
        """Say that the time is over."""
        super().__init__("not done within the time limit; send less at once")


class Stopping(Refusal):
    """A server that finishes what it has and takes no more."""

    status = 503
    code = "stopping"
    retry_after = _SOON

    def __init__(self) -> None:
        """Say that the server ends."""
        super().__init__("the server is stopping")


class Gone(Refusal):
    """A client that has left: nobody reads this."""

    status = 499
    code = "gone"

    def __init__(self) -> None:
        """Say that the client has left."""
        super().__init__("the client has left")


class Broken(Refusal):
    """A model that gives no numbers, or a memory that is used up: no fault of the request."""

    status = 500
    code = "model_error"


def shown(name: str) -> str:
    """Return a name or code as a message may show it: short and plain, else a placeholder."""
    is_plain = name.isprintable() and 0 < len(name) <= 40
    return name if is_plain else "(not a name)"
