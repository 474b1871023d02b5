#!/usr/bin/env python3
"""Talks to a running `lookback serve` with the real clients of the services whose endpoints it has; see README.md."""

import argparse
import json
import urllib.request

import jsonschema
import openai
from libretranslatepy import LibreTranslateAPI
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families


def ask(url, path, body=None):
    """The answer to a request as text; without a body it is a GET."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


def libretranslate(url, sentence):
    api = LibreTranslateAPI(url + "/")
    language = api.languages()[0]
    translated = api.translate(sentence, language["code"], language["targets"][0])
    same = json.loads(ask(url, "/translate", {"q": sentence, "source": language["code"], "target": language["targets"][0]}))
    assert translated == same["translatedText"], (translated, same)
    return f"libretranslatepy: {sentence!r} -> {translated!r}"


def completions(url, prompt):
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    assert client.models.retrieve(model).id == model
    fixed = dict(model=model, prompt=prompt, max_tokens=24)
    whole = client.completions.create(**fixed, temperature=0)
    text = whole.choices[0].text
    assert whole.usage.completion_tokens == 24 and whole.choices[0].finish_reason == "length", whole

    # A stream is the same in pieces.
    events = list(client.completions.create(**fixed, temperature=0, stream=True, stream_options={"include_usage": True}))
    assert "".join(event.choices[0].text for event in events if event.choices) == text, events
    assert len(events) > 3 and events[-1].usage == whole.usage, events[-1]

    # A stop text ends the completion before it; a stream never shows a part of it.
    middle = text[len(text) // 2 :][:3]
    before = text[: text.index(middle)]
    stopped = client.completions.create(**fixed, temperature=0, stop=middle)
    assert (stopped.choices[0].text, stopped.choices[0].finish_reason) == (before, "stop"), (stopped, middle)
    pieces = client.completions.create(**fixed, temperature=0, stop=[middle], stream=True)
    assert "".join(event.choices[0].text for event in pieces) == before

    # Probabilities: the likeliest token is the one that greedy decoding took, and echo scores what was written alike.
    scored = client.completions.create(**fixed, temperature=0, logprobs=3).choices[0].logprobs
    assert "".join(scored.tokens) == text and scored.text_offset[0] == 0
    assert all(max(top.values()) == top[token] for top, token in zip(scored.top_logprobs, scored.tokens)), scored
    again = client.completions.create(model=model, prompt=prompt + text, max_tokens=0, echo=True, logprobs=1).choices[0]
    assert again.text == prompt + text
    for one, other in zip(scored.token_logprobs, again.logprobs.token_logprobs[-len(scored.tokens) :]):
        assert abs(one - other) < 1e-3, (one, other)

    # Several prompts with several draws; one seed gives one text.
    drawn = client.completions.create(model=model, prompt=[prompt, prompt], n=2, max_tokens=24, temperature=0.8, seed=7)
    texts = [choice.text for choice in drawn.choices]
    assert [choice.index for choice in drawn.choices] == [0, 1, 2, 3]
    assert texts[:2] == texts[2:] and texts[0] != texts[1], texts

    for wrong, kind in (
        ({"model": "nothing"}, openai.NotFoundError),
        ({"max_tokens": 10**9}, openai.BadRequestError),
        ({"logit_bias": {"5": 1}}, openai.BadRequestError),
    ):
        try:
            client.completions.create(**{**fixed, **wrong})
        except kind as error:
            assert error.body["message"], error
        else:
            raise AssertionError(f"{wrong} was taken")
    return f"openai: {prompt!r} -> {text!r}; streamed, stopped, scored, drawn"


def description(url, sentence, prompt):
    api = json.loads(ask(url, "/openapi.json"))
    validate(api)
    sizes = []
    runs = json.loads(ask(url, "/info"))["runs"]
    translator, writer = (next(run["name"] for run in runs if run["is_text"] == is_text) for is_text in (False, True))
    bodies = {
        "/translate": {"q": [sentence, sentence], "model": translator, "alternatives": 1},
        "/attention": {"q": sentence, "model": translator, "blank": [1]},
        "/explain": {"q": sentence, "model": translator, "step": 1},
        "/score": {"q": sentence, "translation": sentence, "model": translator},
        "/tokenize": {"q": sentence, "model": translator},
        "/v1/completions": {"prompt": prompt, "model": writer, "logprobs": 2},
    }
    for path, methods in api["paths"].items():
        (method, operation), = methods.items()
        content = operation["responses"]["200"]["content"].get("application/json")
        if content is None:
            assert ask(url, path)
            continue
        body = bodies[path] if method == "post" else None
        answer = json.loads(ask(url, path.replace("{model}", writer), body))
        schema = {**content["schema"], "components": api["components"]}
        jsonschema.Draft202012Validator(schema).validate(answer)
        sizes.append(path)
    jsonschema.Draft202012Validator({"$ref": "#/components/schemas/Attention", "components": api["components"]}).validate(
        json.loads(ask(url, "/attention", {"q": prompt, "model": writer}))
    )
    return f"openapi.json: valid, and so are the answers of {len(sizes)} endpoints"


def metrics(url):
    found = {family.name: family for family in text_string_to_metric_families(ask(url, "/metrics"))}
    written = found["lookback_written_tokens"].samples[0].value
    assert written > 0 and found["lookback_queue_size"].type == "gauge", found
    return f"prometheus_client: {len(found)} metrics, {written:.0f} tokens written"


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("url", nargs="?", default="http://127.0.0.1:5000")
parser.add_argument("--sentence", default="a b c", help="what the first model translates")
parser.add_argument("--prompt", default="A man in a", help="what the language model goes on with")
args = parser.parse_args()
print(libretranslate(args.url, args.sentence))
print(completions(args.url, args.prompt))
print(description(args.url, args.sentence, args.prompt))
print(metrics(args.url))
