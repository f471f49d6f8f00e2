"""Waiting times of operators whose arrivals and services are not exponential.

Equation 5 of DRS multiplies the waiting time of M/M/k by half the sum of two squared coefficients
of variation. It is exact for M/M/k and for one processor with Poisson arrivals, and good near
saturation; at low utilisation, with many processors, or with arrivals more regular than Poisson it
is off by a factor. Whitt's refinement adds another factor that depends on both and on the load.

Source: DRS, equation 5; Whitt, Approximations for the GI/G/m queue (1993), 2.24 to 2.27.
"""

from __future__ import annotations

import math


def equation_5(arrival_scv: float, service_scv: float) -> float:
    """By what equation 5 multiplies the waiting time of M/M/k.

    >>> equation_5(1.0, 1.0), equation_5(1.0, 0.0)
    (1.0, 0.5)
    """
    return (arrival_scv + service_scv) / 2


def whitt(arrival_scv: float, service_scv: float, k: int, utilisation: float) -> float:
    """By what the waiting time of M/M/k is multiplied, with Whitt's refinement. It is 1 for M/M/k,
    equation 5 for M/G/1, and 0 where nothing varies.

    >>> whitt(1.0, 1.0, 4, 0.7), whitt(1.0, 0.0, 1, 0.7)
    (1.0, 0.5)
    """
    mean = (arrival_scv + service_scv) / 2
    if mean == 0 or utilisation <= 0:
        return mean
    spare = (1 - utilisation) * (k - 1) * (math.sqrt(4 + 5 * k) - 2)
    gamma = min(0.24, spare / (16 * k * utilisation))
    dense, regular = 1 + gamma, (1 - 4 * gamma) * math.exp(-2 * (1 - utilisation) / utilisation / 3)
    even = 1.0
    if mean < 1:
        even = min(1.0, (dense + regular) / 2) ** (2 * (1 - mean))
    if arrival_scv >= service_scv:
        whole = 4 * arrival_scv - 3 * service_scv
        factor = 4 * (arrival_scv - service_scv) / whole * dense + service_scv / whole * even
    else:
        whole = 2 * (arrival_scv + service_scv)
        factor = (service_scv - arrival_scv) / whole * regular
        factor += (service_scv + 3 * arrival_scv) / whole * even
    return factor * mean
