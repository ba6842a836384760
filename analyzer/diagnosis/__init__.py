"""Rules: which facts of a run contradict each other, what the healthy value would be, and what that is worth."""

from analyzer.diagnosis.judgement import BenignHit, Finding, Judgement, Undecided
from analyzer.diagnosis.ruleset import RuleSet

__all__ = ["BenignHit", "Finding", "Judgement", "RuleSet", "Undecided"]
