"""Number words for tests/suite/data/tasks.rs, from an independent implementation.

    pip install num2words==0.5.14
    python tests/golden/number_words.py > tests/golden/number_words.tsv

Columns: number, English, traditional French. Lines that start with # are comments.

num2words writes English the British way ("one thousand, two hundred and one"); the project writes it the American way, so
commas and "and" are taken out here. French is num2words' own, unchanged: on these values both agree.

(This file is not called numbers.py, as that would hide a module of the standard library from every script beside it.)
"""

from importlib.metadata import version

from num2words import num2words


def english(number: int) -> str:
    return num2words(number, lang="en").replace(",", "").replace(" and ", " ")


def numbers() -> list[int]:
    below_hundred = list(range(101))
    hundreds = [h * 100 + r for h in range(1, 10) for r in (0, 1, 11, 20, 21, 71, 80, 81, 91)]
    counts = [1, 2, 11, 20, 21, 71, 80, 81, 91, 99, 100, 101, 180, 200, 201, 280, 300, 380, 999]
    scaled = [c * scale + r for scale in (10**3, 10**6, 10**9) for c in counts for r in (0, 80, 200)]
    # A multiplicative sequence, so that no digit pattern is favoured; the modulus is a prime just below 10^12.
    scattered = [pow(7, 3 * k, 999_999_999_989) for k in range(5, 45)]
    return sorted(set(below_hundred + hundreds + scaled + scattered + [999_999_999_999]))


def main() -> None:
    print(f"# python tests/golden/number_words.py, num2words {version('num2words')}")
    for number in numbers():
        print(number, english(number), num2words(number, lang="fr"), sep="\t")


if __name__ == "__main__":
    main()
