"""Longitude and latitude in degrees: the date line, the poles, and points without a direction."""

import json
import math

import numpy as np
import pytest

import dpmedian
from dpmedian.cli import main
from dpmedian.release import MethodResult
from dpmedian.sources.cells import Intake
from dpmedian.sources.records import as_records
from dpmedian.sources.sphere import as_position, as_vectors
from dpmedian.spherical import as_arc, as_chord, kilometers

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def arc(a, b):
    """The degrees of arc between two positions, by the haversine formula."""
    (lon, lat), (other_lon, other_lat) = np.radians(a), np.radians(b)
    half = (
        math.sin((lat - other_lat) / 2) ** 2
        + math.cos(lat) * math.cos(other_lat) * math.sin((lon - other_lon) / 2) ** 2
    )
    return math.degrees(2 * math.asin(math.sqrt(min(half, 1.0))))


def around(longitude, latitude, spread, n, seed=0):
    """Positions around a place, at angles of about `spread` degrees, made by rotating positions around the north
    pole.
    """
    rng = np.random.default_rng(seed)
    colatitude, turn = np.radians(spread * np.abs(rng.normal(size=n))), rng.uniform(0, 2 * np.pi, size=n)
    x, y, z = np.sin(colatitude) * np.cos(turn), np.sin(colatitude) * np.sin(turn), np.cos(colatitude)
    tilt = np.radians(90.0 - latitude)
    x, z = x * np.cos(tilt) + z * np.sin(tilt), z * np.cos(tilt) - x * np.sin(tilt)
    longitudes = np.degrees(np.arctan2(y, x)) + longitude
    return np.column_stack([(longitudes + 180.0) % 360.0 - 180.0, np.degrees(np.arcsin(np.clip(z, -1, 1)))])


@pytest.mark.parametrize("place", [(11.0, 48.0), (180.0, -17.0), (-179.99, 65.0), (40.0, 90.0), (0.0, -89.9)])
def test_every_place_is_found(place):
    positions = around(*place, 1.0, 3000)
    release = dpmedian.geometric_median(positions, geometry="sphere", seed=1, **BUDGET)
    assert release.point.shape == (2,)
    assert -180.0 <= release.point[0] <= 180.0
    assert arc(release.point, place) < 0.1
    assert arc(release.point, place) < 10.0 * release.error_radius < 1.0
    assert 0.3 < release.scale < 1.5
    assert not any("border" in note for note in release.notes)


def test_longitudes_count_modulo_360():
    positions = around(179.0, 10.0, 1.0, 500)
    turned = np.add(positions, [360.0, 0.0])
    # The remainder is exact if the sum was; otherwise the last bit of a longitude changes.
    releases = [dpmedian.geometric_median(p, geometry="sphere", seed=3, **BUDGET).point for p in (positions, turned)]
    assert arc(*releases) < 1e-6


def test_what_is_no_position_is_not_finite():
    positions = around(5.0, 5.0, 1.0, 500)
    positions[7] = [0.0, 90.5]
    with pytest.raises(
        ValueError, match=r"the latitude in row 8 is not between -90 and 90; .*longitude, then latitude"
    ):
        dpmedian.geometric_median(positions, geometry="sphere", **BUDGET)
    assert np.isnan(as_vectors(as_records(positions), Intake(unattended=True)).array[7]).all()
    assert dpmedian.geometric_median(positions, geometry="sphere", nonfinite="center", seed=0, **BUDGET).n == 500
    positions[2, 0] = np.nan
    with pytest.raises(ValueError, match="row 3, column 1 is missing"):
        dpmedian.geometric_median(positions, geometry="sphere", **BUDGET)


def test_positions_without_a_common_direction_fail_and_are_charged():
    turn = np.linspace(-180.0, 180.0, 4000, endpoint=False)
    ledger = dpmedian.Ledger(epsilon=1.0, delta=1e-6)
    with pytest.raises(dpmedian.ReleaseFailed, match="no position"):
        dpmedian.geometric_median(
            np.column_stack([turn, 0.0 * turn]), geometry="sphere", ledger=ledger, seed=0, **BUDGET
        )
    assert [entry.state for entry in ledger.entries] == ["failed"]


def test_the_error_is_the_largest_angle_within_it():
    """Points within the error of the released point lie within the angle, and the tangent attains it."""
    point, error = np.array([0.5, 0.3, -0.2]), 0.25
    found = as_position(MethodResult(point=point, error_radius=error, scale=0.1))
    rng = np.random.default_rng(0)
    moved = rng.normal(size=(200_000, 3))
    others = point + error * moved / np.linalg.norm(moved, axis=1, keepdims=True)
    cosines = others @ point / np.linalg.norm(others, axis=1) / np.linalg.norm(point)
    largest = float(np.degrees(np.arccos(cosines.min())))
    assert found.error_radius * 0.999 < largest <= found.error_radius
    assert found.scale == as_arc(0.1)
    with pytest.raises(dpmedian.ReleaseFailed, match="no position"):
        as_position(MethodResult(point=point, error_radius=0.62))
    with pytest.raises(dpmedian.ReleaseFailed, match="no position"):
        as_position(MethodResult(point=np.zeros(3)))


def test_arcs_and_chords():
    assert as_chord(60.0) == pytest.approx(1.0)
    assert as_chord(180.0) == pytest.approx(2.0)
    assert as_arc(as_chord(0.25)) == pytest.approx(0.25)
    assert as_arc(3.0) == pytest.approx(180.0)


def test_the_plan_is_that_of_unit_vectors():
    made = dpmedian.plan(3000, 2, geometry="sphere", resolution=0.1, **BUDGET)
    parameters = made.parameters
    assert (parameters.d, parameters.radius, parameters.resolution) == (3, 1.0, as_chord(0.1))
    assert "d = 3 (unit vectors of positions)" in str(made)
    assert dpmedian.verify(made).holds
    release = made.run(around(8.0, 47.0, 0.5, 3000))
    assert release.cost.rho == pytest.approx(
        dpmedian.plan(3000, 3, radius=1.0, resolution=as_chord(0.1), **BUDGET).cost.rho
    )
    assert dpmedian.verify(release).holds
    again = dpmedian.Release.from_json(release.to_json())
    assert again.point.tolist() == release.point.tolist()
    for wrong, message in (
        ({"radius": 2.0}, "does not accept radius="),
        ({"center": [0.0, 0.0]}, "does not accept center="),
        ({"resolution": 70.0}, "between 0 and 60 degrees"),
    ):
        with pytest.raises(ValueError, match=message):
            dpmedian.plan(3000, 2, geometry="sphere", **BUDGET, **wrong)
    with pytest.raises(ValueError, match="needs two columns, longitude and latitude in degrees, got d = 3"):
        dpmedian.plan(3000, 3, geometry="sphere", **BUDGET)
    with pytest.raises(ValueError, match="needs two columns"):
        dpmedian.geometric_median(np.zeros((100, 3)), geometry="sphere", **BUDGET)
    with pytest.raises(ValueError, match="geometry must be one of 'euclidean', 'sphere', got 'torus'"):
        dpmedian.plan(3000, 2, geometry="torus", **BUDGET)


def test_units_are_reduced_on_the_sphere():
    """Two positions of a person on both sides of the date line have their middle on the date line, not in Greenwich."""
    ids = np.repeat(np.arange(1000), 2)
    rows = np.tile([[179.0, 10.0], [-179.0, 10.0]], (1000, 1))
    release = dpmedian.geometric_median(rows, unit=ids, geometry="sphere", seed=1, **BUDGET)
    assert arc(release.point, (180.0, 10.0)) < 0.1
    assert release.n == 1000


def test_the_estimator_and_the_command_know_the_sphere(tmp_path, capsys):
    positions = around(180.0, 0.0, 1.0, 1000)
    expected = dpmedian.geometric_median(positions, geometry="sphere", seed=4, **BUDGET).point.tolist()
    estimator = pytest.importorskip("dpmedian.sklearn").PrivateGeometricMedian(
        geometry="sphere", random_state=4, **BUDGET
    )
    assert estimator.fit(positions).location_.tolist() == expected
    path = tmp_path / "positions.csv"
    path.write_text("lon,lat\n" + "\n".join(f"{x!r},{y!r}" for x, y in positions.tolist()))
    arguments = ["release", str(path), "--geometry", "sphere", "--epsilon", "1", "--delta", "1e-6", "--seed", "4"]
    assert main(arguments) == 0
    assert list(json.loads(capsys.readouterr().out)["point"].items()) == list(
        zip(["lon", "lat"], expected, strict=True)
    )


def test_the_picture_crosses_the_date_line():
    pytest.importorskip("matplotlib").use("Agg")
    positions = around(180.0, 60.0, 1.0, 500)
    release = dpmedian.geometric_median(positions, geometry="sphere", seed=0, **BUDGET)
    axes = release.plot(positions)
    shown = axes.collections[0].get_offsets()
    assert np.abs(shown[:, 0] - release.point[0]).max() < 20.0
    assert axes.get_aspect() == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(
    "columns", [("lat", "lon"), ("Latitude", "Longitude"), ("start_lat", "start_lng"), ("y", "lon"), ("lat", "x")]
)
@pytest.mark.parametrize("nonfinite", ["raise", "center"])
def test_names_that_say_the_wrong_order_are_refused(columns, nonfinite, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(around(11.0, 48.0, 1.0, 300), columns=columns)
    options = {"geometry": "sphere", "rho": 0.5, "nonfinite": nonfinite}
    with pytest.raises(ValueError, match="needs longitude, then latitude, but the columns are"):
        dpmedian.geometric_median(frame, **options)
    frame.to_csv(tmp_path / "a.csv", index=False)
    command = ["release", str(tmp_path / "a.csv"), "--columns", ",".join(columns), "--geometry", "sphere", "--rho", "1"]
    assert main([*command, "--nonfinite", nonfinite]) == 2
    assert "give them in the other order" in capsys.readouterr().err
    dpmedian.geometric_median(frame.set_axis(["platform", "flat"], axis=1), **options)


@pytest.mark.parametrize("names", [("y", "x"), ("startLat", "startLon"), ("Decimal Latitude", "b"), ("a", "LONG")])
def test_names_in_the_wrong_order_are_refused_however_they_are_written(names):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(around(8.0, 47.0, 0.1, 200), columns=names)
    with pytest.raises(ValueError, match="give them in the other order, or rename them"):
        dpmedian.Dataset.of(frame, geometry="sphere")


@pytest.mark.parametrize("names", [("x", "y"), ("lon_x", "lat_x"), ("plateau", "belong"), ("a_y", "b_x")])
def test_names_in_the_right_order_and_other_words_are_not(names):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(around(8.0, 47.0, 0.1, 200), columns=names)
    assert dpmedian.Dataset.of(frame, geometry="sphere").columns == names


def test_distances_on_the_globe_are_printed_in_kilometers():
    release = dpmedian.geometric_median(around(8.0, 47.0, 0.1, 3000), geometry="sphere", seed=1, **BUDGET)
    text, region = str(release), release.confidence_region()
    assert "longitude: " in text
    for degrees in (release.error_radius, release.scale, region.radius):
        assert f"{kilometers(degrees):.4g} km ({degrees:.4g} degrees)" in text
    assert f"radius {kilometers(region.radius):.4g} km ({region.radius:.4g} degrees)" in repr(region)
