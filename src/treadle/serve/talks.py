"""Talks: the routes of conversations, which are apart by user: nobody reads or names those of somebody else."""

import secrets

from msgspec import Struct
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from treadle.serve.endpoint import Endpoint
from treadle.serve.forms import conversation_form, line_form
from treadle.serve.page_of import Page, place_after, place_of
from treadle.serve.refused import Refused
from treadle.serve.serving import Serving, json_response
from treadle.serve.shapes import ConversationLine, ConversationPage, NewConversation, WholeConversation


class New(Struct, forbid_unknown_fields=True):
    """A conversation to come."""

    title: str = ""


class Title(Struct, forbid_unknown_fields=True):
    """What a conversation is called from now on; empty for how it was asked."""

    title: str


async def list_conversations(serving: Serving, request: Request, wanted: Page) -> Response:
    """The conversations of the user, those that were spoken in last first."""
    talks, user = serving.runs.conversations, serving.user(request)
    found, last = await talks.list(user, wanted.limit, place_of(wanted.before))
    return json_response(
        ConversationPage(conversations=[conversation_form(one) for one in found], next=place_after(last))
    )


async def create(serving: Serving, request: Request, given: New) -> Response:
    """A name for a new conversation, which is there from its first run on; its title is kept until then."""
    user, name = serving.user(request), secrets.token_hex(8)
    if not user.begins:
        raise Refused("forbidden", "you may look at runs, and not begin any")
    if given.title.strip():
        await serving.runs.conversations.entitle(user, name, given.title)
    return json_response(NewConversation(id=name, title=given.title), 201)


async def find(serving: Serving, request: Request) -> Response:
    """A conversation with what was said in it, and its newest runs."""
    talks, user, name = serving.runs.conversations, serving.user(request), request.path_params["conversation"]
    told = await talks.find(user, name)
    runs = await talks.runs(user, name, 200)
    said = await talks.said(user, name)
    return json_response(
        WholeConversation(**asdict(conversation_form(told)), messages=said, runs=[line_form(one) for one in runs])
    )


async def rename(serving: Serving, request: Request, given: Title) -> Response:
    """Calls a conversation by another title."""
    talks, user, name = serving.runs.conversations, serving.user(request), request.path_params["conversation"]
    await talks.find(user, name)
    await talks.entitle(user, name, given.title)
    return json_response(conversation_form(await talks.find(user, name)))


async def delete_conversation(serving: Serving, request: Request) -> Response:
    """Removes a conversation with all its runs."""
    await serving.runs.conversations.delete(serving.user(request), request.path_params["conversation"])
    return Response(status_code=204)


ENDPOINTS = (
    Endpoint("GET", "/api/conversations", list_conversations, ConversationPage, query=Page),
    Endpoint("POST", "/api/conversations", create, NewConversation, body=New, status=201),
    Endpoint("GET", "/api/conversations/{conversation}", find, WholeConversation),
    Endpoint("PATCH", "/api/conversations/{conversation}", rename, ConversationLine, body=Title),
    Endpoint("DELETE", "/api/conversations/{conversation}", delete_conversation, None, status=204),
)
"""Every route of conversations."""
