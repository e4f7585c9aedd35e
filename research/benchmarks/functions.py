"""Test functions of a list of numbers, for methods.py and spaces.py."""
import math


def branin(x):
    return (x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


def hartmann6(x):
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    return -sum(c * math.exp(-sum(a[i][j] * (x[j] - p[i][j] / 1e4) ** 2 for j in range(6))) for i, c in enumerate((1, 1.2, 3, 3.2)))


def ackley(x):
    n = len(x)
    return -20 * math.exp(-0.2 * math.sqrt(sum(v * v for v in x) / n)) - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n) + 20 + math.e


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (a - 1) ** 2 for a, b in zip(x, x[1:]))


def rastrigin(x):
    return sum(10 + v * v - 10 * math.cos(2 * math.pi * v) for v in x)


def levy(x):
    w = [1 + (v - 1) / 4 for v in x]
    inner = sum((v - 1) ** 2 * (1 + 10 * math.sin(math.pi * v + 1) ** 2) for v in w[:-1])
    return math.sin(math.pi * w[0]) ** 2 + inner + (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
