"""A sketchlet as flat arrays by name, as segments hold them, and back.

Arrays of more dimensions are written flat, their shape beside them under ``<name>/shape``. Layers
of leaves keep their shape by the number of features alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geoflux.errors import StateError
from geoflux.sketch.edges import Edges
from geoflux.sketch.leaves import Leaves
from geoflux.sketch.mixtures import Densities
from geoflux.sketch.schema import SketchSchema
from geoflux.sketch.sets import Sets

if TYPE_CHECKING:
    from geoflux.sketch.forest import Forest

Arrays = Mapping[str, npt.NDArray[Any]]

VERSION = 1


def forest_to_arrays(forest: Forest) -> dict[str, npt.NDArray[Any]]:
    """All of a forest but its schema."""
    about = [VERSION, forest.latest, forest.measured, len(forest.layers), len(forest.fresh)]
    arrays: dict[str, npt.NDArray[Any]] = {
        "forest.about": np.array(about, np.int64),
        "forest.trees": forest.trees,
        "forest.rows": forest.rows,
        "forest.order": np.array(forest.order, np.int64),
    }
    for kind, layers in (("layer", forest.layers), ("fresh", forest.fresh)):
        for i, leaves in enumerate(layers):
            arrays |= leaves.to_arrays(f"{kind}{i}.")
    for part in (forest.edges, forest.densities, forest.sets):
        arrays |= _flat(part.to_arrays())
    return arrays


def forest_from_arrays(schema: SketchSchema, arrays: Arrays) -> dict[str, Any]:
    """The fields of a forest."""
    version, latest, measured, layers, fresh = (int(n) for n in arrays["forest.about"])
    if version != VERSION:
        raise StateError(
            f"the sketch was written in form {version}, this geoflux reads {VERSION}; "
            "use the geoflux that wrote it, or a new directory"
        )
    features = len(schema.features)
    shaped = _shaped(arrays)
    return {
        "trees": arrays["forest.trees"],
        "edges": Edges.from_arrays(shaped),
        "densities": Densities.from_arrays(shaped),
        "sets": Sets.from_arrays(schema, shaped),
        "layers": _layers(arrays, features, "layer", layers),
        "fresh": _layers(arrays, features, "fresh", fresh),
        "rows": arrays["forest.rows"],
        "latest": latest,
        "order": tuple(int(f) for f in arrays["forest.order"]),
        "measured": measured,
    }


def _layers(arrays: Arrays, features: int, kind: str, count: int) -> tuple[Leaves, ...]:
    return tuple(Leaves.from_arrays(arrays, features, f"{kind}{i}.") for i in range(count))


def _flat(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    flat: dict[str, npt.NDArray[Any]] = {}
    for name, array in arrays.items():
        flat[name] = array.ravel()
        if array.ndim != 1:
            flat[f"{name}/shape"] = np.array(array.shape, np.int64)
    return flat


def _shaped(arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    return {
        name: array.reshape(arrays[f"{name}/shape"]) if f"{name}/shape" in arrays else array
        for name, array in arrays.items()
        if not name.endswith("/shape")
    }
