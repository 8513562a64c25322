"""Plain text to documents: one paragraph a line, a blank line between documents; `.gz` and `.xz` read as they are.

Sentences are split by `sentencex` (Wikimedia's splitter, written for encyclopaedic text in some 300
languages; fast, offline, and in use by its makers).
"""

import glob
import gzip
import lzma
from pathlib import Path

_OPENERS = {".gz": gzip.open, ".xz": lzma.open}


class TextError(ValueError):
    """A text file that cannot be read or holds nothing to learn from."""


def find_files(patterns):
    """Sorted paths for files or glob patterns.

    Raises: TextError naming the pattern that matches nothing.
    """
    found = []
    for pattern in patterns:
        matches = sorted(glob.glob(str(pattern), recursive=True)) or [str(pattern)]
        found += [Path(match) for match in matches]
    for path in found:
        if not path.is_file():
            raise TextError(f"There is no text file {path}.")
    return found


def read_documents(paths):
    """Documents of text files, one after the other, in constant memory.

    Args:
        paths: files of UTF-8 text.

    Yields: list of str, the paragraphs of a document.

    Raises: TextError naming the file, on text that is not UTF-8 or a damaged archive.
    """
    for path in map(Path, paths):
        paragraphs = []
        try:
            with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as lines:
                for line in lines:
                    line = line.strip()
                    if line:
                        paragraphs.append(line)
                    elif paragraphs:
                        yield paragraphs
                        paragraphs = []
        except UnicodeDecodeError as error:
            raise TextError(f"{path} is not UTF-8 text (byte {error.start}); convert it first.") from error
        except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise TextError(f"{path} is a damaged archive: {error}.") from error
        if paragraphs:
            yield paragraphs


def sentences(paragraph, language="en"):
    """The sentences of a paragraph, stripped, none empty."""
    import sentencex

    return [sentence for sentence in map(str.strip, sentencex.segment(language, paragraph)) if sentence]
