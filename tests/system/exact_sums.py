"""Numbers for tests of sums that do not depend on order, and their sums by exact arithmetic.

Numbers are handled as their bits. Nothing here comes from the product, and nothing is rounded but
the result.
"""

import random

#: By type: bytes, bits of the fraction, bits of the exponent.
TYPES = {"float16": (2, 10, 5), "bfloat16": (2, 7, 8), "float32": (4, 23, 8), "float64": (8, 52, 11)}


class Type:
    def __init__(self, name):
        self.bytes, self.fraction, self.exponent = TYPES[name]
        self.sign = 1 << self.fraction + self.exponent
        self.infinity = (1 << self.exponent) - 1 << self.fraction

    def value(self, bits):
        """A finite number's, in units of the smallest that there is: an integer."""
        exponent, fraction = bits >> self.fraction & (1 << self.exponent) - 1, bits & (1 << self.fraction) - 1
        units = fraction if exponent == 0 else (fraction | 1 << self.fraction) << exponent - 1
        return -units if bits & self.sign else units

    def nearest(self, value):
        """The bits of the number next to a value, ties to even: found by looking, as numbers are
        ordered as their bits are."""
        sign, value = (self.sign, -value) if value < 0 else (0, value)
        below, above = 0, self.infinity
        # Infinity stands where the next number would be.
        if value >= self.value(above):
            return sign | above
        while above - below > 1:
            middle = (above + below) // 2
            below, above = (middle, above) if self.value(middle) <= value else (below, middle)
        down, up = value - self.value(below), self.value(above) - value
        return sign | (above if up < down or (up == down and below % 2) else below)

    def sum(self, numbers):
        """What IEEE 754 says of the sum of all, rounded once."""
        special = {bits for bits in numbers if bits & ~self.sign >= self.infinity}
        if any(bits & ~self.sign > self.infinity for bits in special) or len(special) == 2:
            return self.infinity | 1 << self.fraction - 1
        if special:
            return special.pop()
        if all(bits == self.sign for bits in numbers):
            return self.sign
        return self.nearest(sum(map(self.value, numbers)))


def given(name, giver, count, wild=True):
    """What a giver gives: numbers around an exponent that wanders, and hostile ones among them:
    subnormals, zeros of both signs, infinities, what is no number, and pairs that cancel."""
    kind, common = Type(name), random.Random(f"{name} {count}")
    own = random.Random(f"{name} {count} {giver}")
    exponents, numbers = (1 << kind.exponent) - 2, []
    for _ in range(count):
        middle, width = common.randrange(exponents + 1), common.choice((1, 3, 12, exponents))
        huge, what = common.getrandbits(kind.fraction), common.randrange(30 if wild else 20)
        exponent = min(exponents, middle + own.randrange(width))
        bits = own.getrandbits(kind.fraction) | exponent << kind.fraction | own.getrandbits(1) * kind.sign
        if what == 29:
            bits = own.choice((kind.infinity, kind.infinity, kind.infinity | kind.sign, bits))
        elif what == 28:
            bits = own.choice((kind.infinity | 5, bits, bits, bits)) | own.getrandbits(1) * kind.sign
        elif what == 27:
            bits = kind.sign if giver != 3 or own.getrandbits(1) else 0
        elif what == 26:
            bits = own.getrandbits(kind.fraction)
        elif what in (24, 25) and giver < 2:
            # The largest numbers there are, of both signs: what others give is all that is left.
            bits = exponents << kind.fraction | huge | giver * kind.sign
        numbers.append(bits)
    return numbers


def sums(name, givers, count, wild=True):
    """The sums of what so many givers give."""
    columns = zip(*(given(name, giver, count, wild) for giver in range(givers)))
    kind = Type(name)
    return [kind.sum(column) for column in columns]


def as_bytes(name, numbers):
    return b"".join(bits.to_bytes(TYPES[name][0], "little") for bits in numbers)
