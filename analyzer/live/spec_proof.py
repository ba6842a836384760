"""Does speculative decoding really work? Four layers of evidence, and a verdict that never exceeds the weakest.

Weights in the folder prove no service, a configured method proves no accepted token, and accepted tokens prove no
higher throughput.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from analyzer.run.facts import Fact, Where
from analyzer.run.model import Run

PROVED, REFUTED, UNKNOWN, NOT_NEEDED = "proved", "refuted", "no evidence", "not needed"
MARKS = {PROVED: "yes", REFUTED: "NO", UNKNOWN: "?", NOT_NEEDED: "-"}
WITHOUT_WEIGHTS = ("ngram", "suffix", "lookahead")
"""Methods that draft without a model of their own."""
NEVER = 0.02
"""An acceptance below this is a draft that is practically never accepted."""


@dataclass(slots=True)
class Layer:
    """One layer: what it asks, what is found, and where."""

    name: str
    state: str
    text: str
    where: tuple[Where, ...] = ()
    how: str = ""
    """What would decide it, when there is no evidence."""


@dataclass(slots=True)
class Proof:
    """The four layers of one run and the verdict."""

    run: int
    layers: list[Layer] = field(default_factory=list)
    verdict: str = UNKNOWN
    text: str = ""


def prove(run: Run) -> Proof:
    """Judges the four layers from the facts of ``run`` (log, model folder, metrics)."""
    method = str(run.facts.value("spec.method") or "").lower()
    layers = [_weights(run, method), _configured(run, method), _loaded(run, method), _counted(run)]
    proof = Proof(run.id, layers)
    asked = [layer for layer in layers if layer.state != NOT_NEEDED]
    if run.facts.value("spec.enabled") is False and layers[3].state == UNKNOWN:
        proof.verdict = REFUTED
        proof.text = "Speculative decoding is off: the server was started without it."
        layers[3].text, layers[3].how = "nothing is drafted without speculation", ""
        return proof
    if refuted := next((layer for layer in asked if layer.state == REFUTED), None):
        proof.verdict = REFUTED
        proof.text = f"Speculative decoding does not work: {refuted.text}."
    elif unknown := [layer for layer in asked if layer.state == UNKNOWN]:
        names = ", ".join(layer.name for layer in unknown)
        proof.text = f"Not proved: no evidence for {names}. {unknown[-1].how}".strip()
    else:
        proof.verdict = PROVED
        proof.text = (
            "Speculative decoding is configured, loaded and accepts tokens. That is no measure of throughput: "
            "compare the same prompts with it on and off."
        )
    return proof


def _places(*facts: Fact | None) -> tuple[Where, ...]:
    return tuple(dict.fromkeys(place for fact in facts if fact is not None for place in fact.where[:2]))


def _weights(run: Run, method: str) -> Layer:
    name = "weights exist"
    if method.startswith(WITHOUT_WEIGHTS):
        return Layer(name, NOT_NEEDED, f"{method} drafts without weights")
    for key in ("draft.weights.on_disk", "spec.layers"):
        fact = run.facts.get(key)
        if fact is None or fact.origin not in ("model-dir", "argument"):
            continue
        if fact.value:
            size = run.facts.value("draft.weights.on_disk")
            text = (
                f"{size / (1 << 20):,.0f} MiB of draft tensors in the files"
                if size
                else f"{fact.value} MTP layers in the files"
            )
            return Layer(name, PROVED, text, fact.where)
        return Layer(name, REFUTED, "the model folder holds no draft or MTP tensor", fact.where)
    return Layer(name, UNKNOWN, "the model folder was not read", how="Give --model-dir (and --draft-dir).")


def _configured(run: Run, method: str) -> Layer:
    name = "configuration resolved"
    enabled, tokens, arch = (run.facts.get(f) for f in ("spec.enabled", "spec.draft_tokens", "draft.arch"))
    fact = run.facts.get("spec.method")
    if fact is not None and method not in ("", "none"):
        text = f"method {fact.value}"
        text += f", {tokens.value} draft tokens" if tokens else ""
        text += f", draft {arch.value}" if arch else ""
        return Layer(name, PROVED, text, _places(fact, tokens, arch))
    if enabled is not None and enabled.value is False:
        return Layer(name, REFUTED, "the server was started without speculation", enabled.where)
    how = "The log must begin with the server's arguments."
    return Layer(name, UNKNOWN, "no line names a speculative method", how=how)


def _loaded(run: Run, method: str) -> Layer:
    name = "draft loaded"
    if method.startswith(WITHOUT_WEIGHTS):
        return Layer(name, NOT_NEEDED, f"{method} loads no draft")
    weights, arch = run.facts.get("draft.weights.loaded"), run.facts.get("draft.arch")
    if weights is not None:
        text = f"the draft took {weights.value / (1 << 30):.2f} GiB" + (f" as {arch.value}" if arch else "")
        return Layer(name, PROVED, text, _places(weights, arch))
    shared = run.facts.get("spec.shared_vocab") or run.facts.get("draft.loaded")
    if shared is not None:
        return Layer(name, PROVED, "the draft was loaded and shares the target's embedding or head", shared.where)
    if run.facts.value("spec.enabled") is False:
        return Layer(name, REFUTED, "no draft is loaded without speculation")
    how = "The log must hold the loading of the weights."
    return Layer(name, UNKNOWN, "no line says that a draft was loaded", how=how)


def _counted(run: Run) -> Layer:
    name = "tokens accepted"
    get = run.facts.get
    drafted = get("metrics.drafted") or get("spec.drafted")
    accepted = get("metrics.accepted") or get("spec.accepted")
    generated = get("metrics.generated")
    if drafted is not None and accepted is not None and drafted.value:
        rate = accepted.value / drafted.value
        text = f"{accepted.value:,.0f} of {drafted.value:,.0f} draft tokens accepted ({100 * rate:.1f} %)"
        state = PROVED if rate > NEVER else REFUTED
        return Layer(name, state, text, _places(drafted, accepted))
    length = get("metrics.accept_length") or get("spec.accept_length")
    if length is not None and length.value:
        extra = length.value - 1
        text = f"{length.value:.2f} tokens per verify step"
        if extra > NEVER:
            return Layer(name, PROVED, text, length.where)
        return Layer(name, REFUTED, f"{text}: no draft token is accepted", length.where)
    if drafted is not None and not drafted.value and generated is not None and generated.value:
        text = f"{generated.value:,.0f} tokens were generated and none was drafted"
        return Layer(name, REFUTED, text, _places(drafted, generated))
    how = "Send a request of some 50 tokens or more and give /metrics of before and after (--metrics), or --url."
    asked = get("http.error") if run.facts.value("http.health") == 0 else None
    text = "no counter of accepted tokens" + (f", and the server did not answer: {asked.value}" if asked else "")
    return Layer(name, UNKNOWN, text, asked.where if asked else (), how)


def page(proof: Proof, *, alone: bool) -> list[str]:
    """The proof as lines of text; ``alone``: its log holds no other run."""
    lines = [proof.verdict if alone else f"run {proof.run}: speculative decoding {proof.verdict}"]
    for layer in proof.layers:
        places = ", ".join(f"l. {w.line}" if w.line else w.source for w in layer.where[:3])
        lines.append(f"  {MARKS[layer.state]:4} {layer.name:24} {layer.text}" + (f"   ({places})" if places else ""))
        if layer.how:
            lines.append(f"       {'':24} {layer.how}")
    return [*lines, proof.text, ""]


def as_json(proof: Proof) -> dict[str, Any]:
    """The proof as a JSON object."""
    return {
        "run": proof.run,
        "verdict": proof.verdict,
        "text": proof.text,
        "layers": [
            {
                "name": layer.name,
                "state": layer.state,
                "text": layer.text,
                "evidence": [{"source": w.source, "line": w.line, "text": w.text} for w in layer.where],
                "how": layer.how,
            }
            for layer in proof.layers
        ],
    }
