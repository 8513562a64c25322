"""Small random models of every kind, and a text for each."""

from pathlib import Path

GOLDEN_FOLDERS = Path(__file__).parents[1] / "golden" / "family"
TEXTS = {
    "roberta": "the license of the work",
    "distilbert": "w1 w2 w3 w4",
    "albert": "the license of the work",
    "electra-discriminator": "w1 w2 w3 w4",
    "electra-generator": "w1 w2 w3 w4",
}
MODERN_FOLDER = GOLDEN_FOLDERS.with_name("modernbert")
MODERN_TEXT = DEBERTA_TEXT = "the license of the work"
LIMITS = '[models]\ndefault = "roberta"\nwarm = false\n'
ONE_WAY = ("reader-left-to-right", "reader-two-one-way")
