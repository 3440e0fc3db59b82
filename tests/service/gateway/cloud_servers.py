"""Strict servers of the clouds: Amazon Bedrock checks signatures and shapes with botocore's own code and descriptions,
Vertex AI sells tokens for signed statements only. Each rule cites its document."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, unquote

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Json = dict[str, Any]
ACCESS, SECRET, SESSION = "AKIAKINDSEXAMPLE0123", "kindsSecretAccessKey/+0123456789abcdefgh", "kindsSessionToken+0123456789"
API_KEY = "bedrock-api-key-kinds-0123456789"
CONVERSED: Json = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [{"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}, {"text": "Hello"}],
        }
    },
    "stopReason": "end_turn",
    "usage": {
        **{"inputTokens": 10, "outputTokens": 7, "totalTokens": 107},
        **{"cacheReadInputTokens": 60, "cacheWriteInputTokens": 30},
    },
    "metrics": {"latencyMs": 1},
}


@cache
def operation(name: str) -> Any:
    described = Loader().load_service_model("bedrock-runtime", "service-2")
    return ServiceModel(described, "bedrock-runtime").operation_model(name)


@dataclass
class Bedrock:
    """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and ..._InvokeModel.html.
    `answer` is that of a call; `echo` puts what it received into a refusal."""

    answer: Json
    keys: tuple[str, str, str | None] = (ACCESS, SECRET, SESSION)
    asked: list[tuple[str, Json]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    echo: bool = False

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/model/{model}/{action}", self._called, methods=["POST"]),
                Route("/foundation-models", self._models),
                Route("/inference-profiles", self._profiles),
            ]
        )

    async def _trouble(self, request: Request) -> Response | None:
        """https://docs.aws.amazon.com/bedrock/latest/userguide/api-keys-use.html: an API key is a bearer.
        https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html"""
        sent = request.headers.get("authorization", "")
        if self.echo:
            return _refusal(
                400, "ValidationException", f"malformed: {sent} {request.headers.get('x-amz-security-token')} {SECRET}"
            )
        if sent == f"Bearer {API_KEY}":
            return None
        if request.headers.get("x-amz-security-token", "") != (self.keys[2] or ""):
            return _refusal(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        if sent != await self._signature(request):
            return _refusal(403, "InvalidSignatureException", "The request signature we calculated does not match")
        return None

    async def _signature(self, request: Request) -> str:
        raw = request.scope["raw_path"].decode()
        query = f"?{request.url.query}" if request.url.query else ""
        url = f"http://{request.headers['host']}{raw.partition('?')[0]}{query}"
        signed = AWSRequest(method=request.method, url=url, data=await request.body())
        for name in ("x-amz-date", "x-amz-security-token"):
            if name in request.headers:
                signed.headers[name] = request.headers[name]
        signed.context["timestamp"] = request.headers.get("x-amz-date", "")
        signer = SigV4Auth(Credentials(*self.keys), "bedrock", "us-east-1")
        signer._inject_signature_to_request(
            signed, signer.signature(signer.string_to_sign(signed, signer.canonical_request(signed)), signed)
        )
        return str(signed.headers["authorization"])

    async def _called(self, request: Request) -> Response:
        if (trouble := await self._trouble(request)) is not None:
            return trouble
        body, action = json.loads(await request.body()), request.path_params["action"]
        self.asked.append((unquote(request.path_params["model"]), body))
        problem = self._converse(body) if action == "converse" else self._invoke(request, body)
        if problem:
            self.refused.append(problem)
            return _refusal(400, "ValidationException", problem)
        return JSONResponse(self.answer)

    def _converse(self, body: Json) -> str:
        said = ParamValidator().validate({"modelId": "m", **body}, operation("Converse").input_shape)
        unknown = body.keys() - operation("Converse").input_shape.members.keys()
        if said.has_errors() or unknown:
            return said.generate_report() or f"Unexpected field {unknown}"
        roles = [message["role"] for message in body["messages"]]
        if roles[:1] != ["user"] or any(one == other for one, other in pairwise(roles)):
            return "A conversation must start with a user message and roles must alternate between user and assistant."
        return ""

    def _invoke(self, request: Request, body: Json) -> str:
        """https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html"""
        if body.get("anthropic_version") != "bedrock-2023-05-31":
            return "anthropic_version: Field required"
        if extra := {"model", "stream"} & body.keys():
            return f"{extra.pop()}: Extra inputs are not permitted"
        return "" if request.headers.get("accept") in ("application/json", "*/*") else "unsupported accept type"

    async def _models(self, request: Request) -> Response:
        """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html"""
        entries = [
            {"modelId": "meta.llama-v1:0", "outputModalities": ["TEXT"], "inferenceTypesSupported": ["ON_DEMAND"]},
            {
                "modelId": "anthropic.claude-v1:0",
                "outputModalities": ["TEXT"],
                "inferenceTypesSupported": ["INFERENCE_PROFILE"],
            },
            {"modelId": "stability.image-v1:0", "outputModalities": ["IMAGE"], "inferenceTypesSupported": ["ON_DEMAND"]},
        ]
        return await self._trouble(request) or JSONResponse({"modelSummaries": entries})

    async def _profiles(self, request: Request) -> Response:
        """https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListInferenceProfiles.html"""
        first = {"inferenceProfileSummaries": [{"inferenceProfileId": "us.anthropic.claude-v1:0"}], "nextToken": "a/b="}
        second = {"inferenceProfileSummaries": [{"inferenceProfileId": "us.meta.llama-v1:0"}]}
        page = second if request.query_params.get("nextToken") == "a/b=" else first
        return await self._trouble(request) or JSONResponse(page)


def _refusal(status: int, kind: str, message: str) -> Response:
    return JSONResponse({"message": message}, status, headers={"x-amzn-errortype": kind})


@dataclass
class Google:
    """https://developers.google.com/identity/protocols/oauth2/service-account#httprest for the tokens,
    https://cloud.google.com/vertex-ai/generative-ai/docs/start/openai and
    https://docs.anthropic.com/en/api/claude-on-vertex-ai for the models."""

    message: Json
    events: bytes
    url: str = ""
    sold: list[str] = field(default_factory=list)
    asked: list[tuple[str, Json]] = field(default_factory=list)
    refuses: bool = False
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048))

    @property
    def account(self) -> Json:
        return {
            "type": "service_account",
            "project_id": "p",
            "private_key_id": "key-1",
            "private_key": self.key.as_pem(private=True).decode(),
            "client_email": "bench@p.iam.gserviceaccount.com",
            "token_uri": f"{self.url}/token",
        }

    def app(self) -> Starlette:
        base = "/v1/projects/p/locations/l"
        return Starlette(
            routes=[
                Route("/token", self._token, methods=["POST"]),
                Route(f"{base}/endpoints/openapi/chat/completions", self._chat, methods=["POST"]),
                Route(base + "/publishers/anthropic/models/{name}", self._claude, methods=["POST"]),
            ]
        )

    async def _token(self, request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode()))
        claims = jwt.decode(form["assertion"], self.key, algorithms=["RS256"])
        right = (
            form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            and claims.header["kid"] == "key-1"
            and claims.claims["iss"] == self.account["client_email"]
            and claims.claims["aud"] == self.account["token_uri"]
            and claims.claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
            and claims.claims["exp"] - claims.claims["iat"] <= 3600
        )
        if self.refuses or not right:
            return JSONResponse({"error": "invalid_grant", "error_description": "Invalid JWT Signature."}, 400)
        self.sold.append(f"ya29.kinds-token-{len(self.sold)}-0123456789")
        return JSONResponse({"access_token": self.sold[-1], "expires_in": 3599, "token_type": "Bearer"})

    def _trouble(self, request: Request) -> Response | None:
        if not self.sold or request.headers.get("authorization") != f"Bearer {self.sold[-1]}":
            return JSONResponse({"error": {"code": 401, "status": "UNAUTHENTICATED", "message": "invalid credentials"}}, 401)
        return None

    async def _chat(self, request: Request) -> Response:
        self.asked.append(("", json.loads(await request.body())))
        return self._trouble(request) or Response(self.events, media_type="text/event-stream")

    async def _claude(self, request: Request) -> Response:
        """The model is in the path and the version in the body; a stream has a method of its own."""
        body, name = json.loads(await request.body()), request.path_params["name"]
        self.asked.append((name, body))
        model, _, method = name.partition(":")
        wanted = "streamRawPredict" if body.get("stream") else "rawPredict"
        if (model, method) != ("m", wanted) or body.get("anthropic_version") != "vertex-2023-10-16" or "model" in body:
            return JSONResponse({"error": {"code": 400, "message": "invalid request"}}, 400)
        return self._trouble(request) or JSONResponse(self.message)
