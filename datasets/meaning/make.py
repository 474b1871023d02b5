"""Writes the training sentences of this folder: train.tsv, valid.tsv and test.tsv.

    python3 datasets/meaning/make.py

Each line is an English sentence, a tab, and the plain German sentence of the same meaning. One meaning has four English
forms and one German form, so that a model has to find the meaning behind the form. A meaning stands in one file only, and
the meanings of en.tsv stand in none. Needs Python 3.9 or newer and nothing else. The same files on every run.
"""

import hashlib
import itertools
import pathlib

FOLDER = pathlib.Path(__file__).parent
N_MEANINGS = {"test": 60, "valid": 60, "train": 1000}

# English, German, gender, accusative.
PERSONS = [("man", "Mann", "m"), ("woman", "Frau", "f"), ("boy", "Junge", "m"), ("girl", "Mädchen", "n"), ("child", "Kind", "n")]
ANIMALS = [("dog", "Hund", "m"), ("cat", "Katze", "f"), ("horse", "Pferd", "n"), ("bird", "Vogel", "m")]
THINGS = [("ball", "Ball", "m"), ("picture", "Bild", "n"), ("car", "Auto", "n"), ("book", "Buch", "n"), ("hat", "Hut", "m"),
          ("flower", "Blume", "f")]
COLOURS = [("red", "rot"), ("brown", "braun"), ("white", "weiß"), ("black", "schwarz"), ("small", "klein")]
# Present, participle, German, objects.
VERBS = [
    ("hugs", "hugged", "umarmt", PERSONS + ANIMALS),
    ("chases", "chased", "jagt", PERSONS + ANIMALS),
    ("sees", "seen", "sieht", PERSONS + ANIMALS + THINGS),
    ("paints", "painted", "malt", PERSONS + ANIMALS + THINGS),
    ("catches", "caught", "fängt", ANIMALS + THINGS),
    ("finds", "found", "findet", PERSONS + ANIMALS + THINGS),
]
INSTRUMENTS = [("guitar", "Gitarre"), ("piano", "Klavier"), ("violin", "Geige")]
PLACES = [("on the street", "auf der Straße"), ("in the water", "im Wasser"), ("in the park", "im Park"),
          ("in the garden", "im Garten"), ("on the beach", "am Strand"), ("in the snow", "im Schnee")]
GROUPS = [("children", "Kinder"), ("men", "Männer"), ("women", "Frauen"), ("dogs", "Hunde"), ("cats", "Katzen")]
NUMBERS = [("two", "zwei"), ("three", "drei"), ("four", "vier")]
ACTIONS = [("play", "spielen"), ("sleep", "schlafen"), ("run", "laufen"), ("dance", "tanzen")]

ARTICLE = {("m", "nom"): "ein", ("f", "nom"): "eine", ("n", "nom"): "ein", ("m", "acc"): "einen", ("f", "acc"): "eine",
           ("n", "acc"): "ein"}
ENDING = {("m", "nom"): "er", ("f", "nom"): "e", ("n", "nom"): "es", ("m", "acc"): "en", ("f", "acc"): "e", ("n", "acc"): "es"}


def english(noun, colour):
    return f"a {colour[0]} {noun[0]}" if colour else f"a {noun[0]}"


def german(noun, colour, case):
    name = "Jungen" if noun[1] == "Junge" and case == "acc" else noun[1]
    article = ARTICLE[noun[2], case]
    return f"{article} {colour[1]}{ENDING[noun[2], case]} {name}" if colour else f"{article} {name}"


def sentence(text):
    return text[0].upper() + text[1:] + "."


def deed(verb, agent, patient):
    """Who does what to whom: active, passive, and with the patient or the agent in front."""
    present, participle, german_verb, _ = verb
    doer, done = english(*agent), english(*patient)
    relative = "whom" if patient[0] in PERSONS else "that"
    forms = [f"{doer} {present} {done}", f"{done} is {participle} by {doer}", f"it is {done} {relative} {doer} {present}",
             f"by {doer} {done} is {participle}"]
    return forms, f"{german(*agent, 'nom')} {german_verb} {german(*patient, 'acc')}"


def music(player, instrument, place):
    doer = english(player, None)
    forms = [f"{doer} plays the {instrument[0]} {place[0]}", f"{place[0]} {doer} plays the {instrument[0]}",
             f"the {instrument[0]} is played by {doer} {place[0]}", f"{place[0]} the {instrument[0]} is played by {doer}"]
    return forms, f"{german(player, None, 'nom')} spielt {place[1]} {instrument[1]}"


def group(number, who, action, place):
    them = f"{number[0]} {who[0]}"
    forms = [f"{them} {action[0]} {place[0]}", f"{place[0]} {them} {action[0]}",
             f"{place[0]} there are {them} who {action[0]}", f"{them} are {place[0]} and {action[0]}"]
    return forms, f"{number[1]} {who[1]} {action[1]} {place[1]}"


def meanings():
    def described(nouns):
        """Nouns with and without an adjective; persons have none."""
        return [(noun, None) for noun in nouns] + [(noun, colour) for noun in nouns if noun not in PERSONS for colour in COLOURS]

    for verb in VERBS:
        for agent, patient in itertools.product(described(PERSONS + ANIMALS), described(verb[3])):
            if agent != patient:
                yield "deed", deed(verb, agent, patient)
    for parts in itertools.product(PERSONS, INSTRUMENTS, PLACES):
        yield "music", music(*parts)
    for parts in itertools.product(NUMBERS, GROUPS, ACTIONS, PLACES):
        yield "group", group(*parts)


def main():
    shown = {line.split("\t")[1] for line in (FOLDER / "en.tsv").read_text(encoding="utf-8").splitlines()}
    kinds = {"deed": [], "music": [], "group": []}
    for kind, (forms, target) in meanings():
        forms = [sentence(form) for form in forms]
        if not shown.intersection(forms):
            kinds[kind].append((forms, sentence(target)))
    def shuffled(text):
        """A sort key that mixes the sentences, the same on every machine."""
        return hashlib.sha256(text.encode()).hexdigest()

    def order(meaning):
        return shuffled(meaning[0][0])

    # A quarter are groups, less than a tenth music, the rest deeds.
    for some in kinds.values():
        some.sort(key=order)
    total = sum(N_MEANINGS.values())
    music_, groups = kinds["music"], kinds["group"][: total // 4]
    chosen = music_ + groups + kinds["deed"][: total - len(music_) - len(groups)]
    chosen.sort(key=order)
    for name, n in N_MEANINGS.items():
        part, chosen = chosen[:n], chosen[n:]
        lines = sorted((f"{form}\t{target}" for forms, target in part for form in forms), key=shuffled)
        (FOLDER / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
