"""Audit records can be read back, and a changed digit of a stage or of the cost is found."""

import json
import math
import pickle
import random
import re
from pathlib import Path

import numpy as np
import pytest

import dpmedian
from contract.registry import METHOD_CASES, RELATION_CASES, cloud
from dpmedian.accounting import PrivacyCost
from dpmedian.cli import main
from dpmedian.data import POSITIONS, load_positions
from dpmedian.digests import sealed
from dpmedian.files import read_points
from dpmedian.parameters import PublicParameters
from dpmedian.planning.choice import make_plan
from dpmedian.verification.reading import parsed, read

SCHEMA = Path(__file__).parents[1] / "docs" / "record.schema.json"
CASES = pytest.mark.parametrize(("name", "relation"), RELATION_CASES)
ASKED = {"epsilon": 1.0, "delta": 1e-6}


def planned(name, relation="replace", guessed=True):
    case = METHOD_CASES[name]
    n = case.n if guessed else None
    return make_plan(PublicParameters.of(n, case.d, neighbours=relation, **case.arguments), case.method)


def valid(record):
    """Whether the schema of the documentation describes the record."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(record)]


@pytest.fixture(scope="module")
def release():
    return dpmedian.geometric_median(read_points(POSITIONS), **ASKED, seed=3, name="typical place")


@pytest.fixture(scope="module")
def failed():
    """A real failure, for data that are far away from the start of the search and a small budget."""
    points = np.random.default_rng(0).normal(size=(120, 3)) + 1e12
    for seed in range(30):
        try:
            dpmedian.geometric_median(points, rho=0.2, seed=seed, name="lost")
        except dpmedian.ReleaseFailed as error:
            return error
    raise AssertionError("no run failed")


def test_a_record_is_read_from_text():
    with pytest.raises(TypeError, match=r"as to_json\(\) returns it, got dict"):
        dpmedian.Release.from_json({})


def test_a_release_reads_back_as_itself(release):
    again = dpmedian.Release.from_json(release.to_json())
    assert again.to_json() == release.to_json()
    assert np.array_equal(again.point, release.point)
    for name in (
        "scale",
        "error_radius",
        "cost",
        "method",
        "n",
        "notes",
        "columns",
        "seeded",
        "name",
        "date",
        "version",
    ):
        assert getattr(again, name) == getattr(release, name), name
    assert str(again) == str(release)
    assert str(again.plan) == str(release.plan)
    with pytest.raises(ValueError, match="read from a record and cannot run"):
        again.plan.run(load_positions())


def test_a_record_that_states_a_private_number_of_records_is_refuted():
    told = planned("adaptive", "add_remove").to_dict()
    assert refuted(told) == ()
    assert any("or with weights it is private" in text for text in refuted({**told, "n": 523}))


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_a_weighted_record_whose_stages_know_no_weights_is_refuted(relation):
    """The plan of a record of another version is not made again, so the stage itself must show the error."""
    told = dpmedian.plan(2000, 2, rho=0.5, neighbours=relation, weight_max=3.0).to_dict()
    assert refuted(told) == ()
    assert (told["weight_max"], told["n"], told["guess"]) == (3.0, None, 2000)
    plain = dpmedian.plan(2000, 2, rho=0.5, neighbours="add_remove").to_dict()
    for record, other in ((told, plain), (plain, told)):
        stages = [{**record["stages"][0], "arguments": other["stages"][0]["arguments"]}, *record["stages"][1:]]
        found = refuted({**record, "version": "0.1.0", "stages": stages})
        assert any("whether records have weights" in text for text in found)


def test_a_release_of_a_private_number_of_records_says_the_noisy_one_only():
    for guess in (None, 500):
        made = dpmedian.geometric_median(cloud(523, 2, seed=1), rho=0.5, neighbours="add_remove", n=guess)
        record = made.to_dict()
        assert valid(record) == []
        assert (record["n"], record["guess"], record["size"]) == (None, guess, made.size)
        again = dpmedian.Release.from_json(made.to_json())
        assert again.to_json() == made.to_json()
        assert (again.n, again.size, str(again.plan)) == (None, made.size, str(made.plan))
        found = dpmedian.verify(made)
        assert found.holds, str(found)
        plan = planned("adaptive", "add_remove", guessed=guess is not None)
        assert str(read(parsed(plan.to_json()))) == str(plan)
        assert dpmedian.verify(plan).holds


def test_the_date_is_in_universal_time_and_of_now(release):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", release.date)


@CASES
def test_plans_of_all_methods_verify_and_follow_the_schema(name, relation):
    plan = planned(name, relation)
    found = dpmedian.verify(plan)
    assert found.holds, str(found)
    assert "The claim holds." in str(found)
    assert valid(plan.to_dict()) == []
    assert read(parsed(plan.to_json())).to_json() == plan.to_json()


def test_a_failure_is_an_output_and_has_its_record(failed):
    record = failed.to_dict()
    assert valid(record) == []
    assert (record["outcome"], record["message"], record["name"]) == ("failed", failed.message, "lost")
    again = read(parsed(failed.to_json()))
    assert isinstance(again, dpmedian.ReleaseFailed)
    assert again.to_json() == failed.to_json()
    assert pickle.loads(pickle.dumps(failed)).to_json() == failed.to_json()
    assert dpmedian.verify(failed).wrong == dpmedian.verify({**record, "seeded": True}).wrong != ()
    with pytest.raises(ValueError, match="record of a failure"):
        dpmedian.Release.from_json(failed.to_json())


def test_a_building_block_that_fails_has_no_plan():
    with pytest.raises(ValueError, match="a building block has no plan"):
        dpmedian.ReleaseFailed("nothing", PrivacyCost(mu_squared=1.0)).to_dict()


def test_the_record_follows_the_schema_and_holds_what_a_reviewer_needs(release):
    record = release.to_dict()
    assert valid(record) == []
    assert valid({**record, "surprise": 1}) != []
    assert valid({name: value for name, value in record.items() if name != "stages"}) != []
    assert record["point"] == dict(zip(("east_km", "north_km"), release.point.tolist(), strict=True))
    assert (record["neighbours"], record["unit"], record["n"], record["d"]) == ("replace", "record", 2000, 2)
    assert record["budget"] == ASKED
    assert record["cap"]["mu_squared"] == record["cost"]["mu_squared"]
    words = " ".join(record["cost_explained"])
    for part in ("mu_squared", "discretization", "epsilon = 1, delta = 1e-06", "one record was replaced"):
        assert part in words


def test_two_columns_of_one_name_keep_both_coordinates(release):
    import dataclasses

    twice = dataclasses.replace(release, columns=("x", "x"))
    assert twice.to_dict()["point"] == release.point.tolist()
    assert dpmedian.Release.from_json(twice.to_json()).columns == ("x", "x")


def test_a_seeded_release_protects_nobody_and_verify_says_so(release):
    found = dpmedian.verify(release)
    assert not found.holds
    assert found.wrong == (
        "the noise came from a seed: anybody who finds the seed can remove the noise, so nobody is protected",
    )
    assert dpmedian.verify(sealed({**release.to_dict(), "seeded": False})).holds


# Changing one digit.


def numbers(value, place=()):
    """The positions of all numbers of a record."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from numbers(part, (*place, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from numbers(part, (*place, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def other_digits(value, rng):
    """The number with its first or its last digit changed, or a random number, if this gives another number."""
    text = repr(value)
    digits = [index for index, sign in enumerate(text.partition("e")[0]) if sign.isdigit()]
    for index in {digits[0], digits[-1]} if rng.random() < 0.5 else {rng.choice(digits)}:
        changed = text[:index] + str((int(text[index]) + rng.randint(1, 9)) % 10) + text[index + 1 :]
        other = type(value)(changed)
        if other != value:
            yield other


def with_value(record, place, value):
    copy = json.loads(json.dumps(record))
    part = copy
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return copy


def at(record, place):
    for step in place:
        record = record[step]
    return record


def refuted(record):
    """The errors that verify finds (also that a record is unreadable) if the attacker computed the digest again."""
    try:
        return dpmedian.verify(sealed(record)).wrong
    except ValueError as error:
        return (str(error),)


@CASES
@pytest.mark.parametrize("version", [pytest.param(dpmedian.__version__, marks=pytest.mark.slow), "0.1.0"])
def test_one_changed_digit_of_a_stage_or_of_the_cost_is_named(name, relation, version):
    """The arithmetic of the record alone suffices, because the plan is not made again for another version. In that
    case, four kinds of changes may go unnoticed, because the claim does not depend on them: another lattice of counts
    (the sensitivity is the same on every lattice), another number that is subtracted from counts, other last digits of
    a weight whose contribution is rounded up, and 24 releases twice instead of 48 releases once.
    """
    record = {**planned(name, relation).to_dict(), "version": version}
    assert refuted(record) == ()
    rng, tried = random.Random(name), 0
    places = [place for part in ("stages", "cost", "cap") for place in numbers(record[part], (part,))]
    if version != dpmedian.__version__:
        places = [place for place in places if not {"bits", "times", "target", "weight"} & set(place)]
    for place in places:
        for value in other_digits(at(record, place), rng):
            # Hyperbolic tangents differ in their last digit between machines, and the last digit of a weight disappears
            # in the rounding of the sensitivity.
            if place[-1] in {"rho", "weight"} and math.isclose(value, at(record, place), rel_tol=1e-12):
                continue
            wrong = refuted(with_value(record, place, value))
            assert wrong, f"{place}: {at(record, place)!r} -> {value!r}"
            if place[0] == "stages":
                stage = record["stages"][place[1]]["name"]
                assert any(stage in text or "cost" in text or "stages" in text for text in wrong), (place, wrong)
            tried += 1
    assert tried >= len(places) / 2


@CASES
def test_a_changed_prediction_or_parameter_is_found_by_making_the_plan_again(name, relation):
    record = planned(name, relation).to_dict()
    rng = random.Random(name)
    places = [place for part in ("n", "guess", "budget") for place in numbers(record[part], (part,))]
    for place in [*places, *numbers(record["prediction"], ("prediction",))]:
        value = at(record, place)
        if value:
            assert refuted(with_value(record, place, type(value)(value * rng.choice((2, 3))))), place


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"neighbours": "add_remove"}, "the record states neighbours = 'add_remove', but its cost states 'replace'"),
        ({"unit": "user"}, "the record states unit = 'user', but its cost states 'record'"),
        ({"cap": None}, "stage 'center': it is capped, but the record states no cap"),
        ({"budget": {"epsilon": 0.5, "delta": 1e-6}}, "the cost exceeds the budget epsilon = 0.5"),
        ({"cost_explained": []}, "the text of cost_explained does not belong to this cost"),
        ({"stages": []}, "the cap is stated as"),
        ({"d": 3}, "it is computed for d = 2, but the records have d = 3"),
    ],
)
def test_claims_that_do_not_fit_together_are_named(release, change, wrong):
    record = {**release.to_dict(), "seeded": False, **change}
    assert any(wrong in text for text in refuted(record)), refuted(record)


@pytest.mark.parametrize("forged", ["dataset", "checked", "found", "weight_max"])
def test_a_budget_contains_limits_only(release, forged):
    """Otherwise an entry of the budget could replace parameters that are checked."""
    traits = {"size": 3000, "unit": "record", "geometry": "torus", "weight_max": None, "scales": None}
    record = {**release.to_dict(), "geometry": "torus"}
    assert refuted({**record, "budget": {**record["budget"], forged: traits}})


def test_a_stage_that_understates_its_sensitivity_consistently_is_named(release):
    """Half of the sensitivity and a quarter of the cost are consistent, but this is not the sensitivity of the
    statistic.
    """
    record = release.to_dict()
    stage = next(stage for stage in record["stages"] if stage["name"] == "center")
    stage["sensitivity"] /= 2.0
    wrong = refuted({**record, "version": "0.1.0"})
    assert any("stage 'center': the sensitivity is stated as" in text for text in wrong)


def test_a_cap_above_the_budget_is_named_even_if_everything_else_follows_it(release):
    record = json.loads(release.to_json().replace(repr(release.cost.mu_squared), repr(4.0 * release.cost.mu_squared)))
    record["cost"]["rho"] = record["cost"]["mu_squared"] / 2.0
    for stage in record["stages"]:
        stage["rho"] = stage["cost"]["mu_squared"] / 2.0
    assert any("the cost exceeds the budget" in text for text in refuted({**record, "version": "0.1.0"}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "JSON object with the entry 'format'"),
        ('{"format": "dpmedian-record/9"}', "reads 'dpmedian-record/1'"),
        ('{"format": "dpmedian-record/1", "outcome": "sold"}', "outcome must be one of"),
        ('{"format": "dpmedian-record/1", "outcome": "planned"}', "no entry"),
        ('{"format": 1, "format": 2}', "'format' occurs twice"),
        ('{"format": NaN}', "NaN is not a number"),
        ('{"format": 1e999}', "1e999 is not a number"),
        ('{"format": ' * 100_000, "not JSON"),
        ('{"format": "dpmedian ledger 3"}', "this is a ledger and not an audit record"),
    ],
)
def test_what_is_no_record_is_refused_with_a_reason(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        dpmedian.verify(text)


def test_a_path_may_be_text(release, tmp_path):
    file = tmp_path / "record.json"
    file.write_text(release.to_json())
    assert str(dpmedian.verify(str(file))) == str(dpmedian.verify(release))
    with pytest.raises(ValueError, match="also accepts the path of a file that exists"):
        dpmedian.verify("nowhere.json")
    with pytest.raises(TypeError, match="record must be a release, a plan, a record or its path, got int"):
        dpmedian.verify(3)


def test_a_record_of_another_kind_of_value_is_refused(release):
    for place in (("stages", 0, "sensitivity"), ("point", "east_km")):
        with pytest.raises(ValueError, match="must be a number"):
            dpmedian.verify(with_value(release.to_dict(), place, "1.0"))


@pytest.mark.slow
def test_no_entry_of_any_kind_is_more_than_a_wrong_record(release):
    """For any entry, a record is unreadable or wrong, or the claim does not depend on the entry. There is never another
    error.
    """
    record = {**release.to_dict(), "seeded": False}

    def places(value, place=()):
        if place:
            yield place
        if isinstance(value, dict):
            for name, part in value.items():
                yield from places(part, (*place, name))
        elif isinstance(value, list):
            for index, part in enumerate(value[:1]):
                yield from places(part, (*place, index))

    for place in places(record):
        for odd in (None, "x", -1, 0, 10**400, 1e308, True, [], {}, [1], {"a": 1}):
            wrong = refuted(with_value(record, place, odd))
            assert all(isinstance(text, str) for text in wrong)
            if place[0] in ("stages", "cap", "cost") and odd in (-1, 1e308):
                assert wrong, (place, odd)


# The command.


def test_the_command_verifies_what_it_released(tmp_path, capsys):
    assert main(["release", str(POSITIONS), "--epsilon", "1", "--delta", "1e-6", "--name", "homes"]) == 0
    file = tmp_path / "record.json"
    file.write_text(capsys.readouterr().out)
    assert valid(json.loads(file.read_text())) == []
    assert main(["verify", str(file)]) == 0
    out, err = capsys.readouterr()
    assert "the release 'homes' by 'adaptive'" in out
    assert "The claim holds. Not authenticated: the released values, the moments" in out.replace("\n", " ")
    assert err == ""
    record = json.loads(file.read_text())
    record["stages"][0]["sigma"] *= 2.0
    file.write_text(json.dumps(record))
    assert main(["verify", str(file)]) == 6
    out, err = capsys.readouterr()
    assert "WRONG  stage 'center'" in out
    assert "The claim does not hold as recorded: 3 things are wrong." in out
    assert err.startswith("dpmedian: refuted: ")
    file.write_text("{}")
    assert main(["verify", str(file)]) == 2
    assert main(["verify", str(tmp_path / "nowhere.json")]) == 2


def test_a_ledger_keeps_the_record_of_what_it_was_charged_for(tmp_path, capsys):
    path = tmp_path / "ledger.json"
    ledger = dpmedian.Ledger(rho=1.0, path=path)
    dpmedian.geometric_median(load_positions(), rho=0.1, ledger=ledger, name="homes")
    (entry,) = ledger.entries
    assert entry.name == "homes"
    assert entry.record["n"] == 2000
    assert valid(dict(entry.record)) == []
    found = dpmedian.verify(entry.record)
    assert found.holds
    assert math.isclose(entry.cost.rho, entry.record["cost"]["rho"])
    assert main(["ledger", "show", str(path), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["entries"]
    assert (shown["name"], shown["record"]) == ("homes", json.loads(json.dumps(entry.record)))


def test_a_record_of_another_version_is_not_said_to_be_whole():
    """The writer of a record chooses its version, so missing entries may go unnoticed, and the verdict says so."""
    record = sealed({**planned("dpgd", "replace").to_dict(), "version": "0.1.0"})
    found = dpmedian.verify(record)
    assert found.holds
    assert not found.whole
    assert str(found).endswith("The claim holds if the record names all stages.")
    assert dpmedian.verify(planned("dpgd", "replace")).whole


def test_a_record_without_stages_is_refuted():
    record = planned("dpgd", "replace").to_dict()
    nothing = {**record, "version": "0.1.0", "stages": []}
    assert any("names no stage" in text for text in refuted(nothing))


@pytest.mark.parametrize(
    "place", [("cost_explained",), ("stages", 0, "sigma"), ("version",), ("prediction",), ("cap",)]
)
def test_a_record_that_lacks_an_entry_is_no_record(release, place):
    record = json.loads(release.to_json())
    part = record
    for step in place[:-1]:
        part = part[step]
    del part[place[-1]]
    with pytest.raises(ValueError, match=f"the record has no entry '{place[-1]}'"):
        dpmedian.verify(sealed(record))


def test_a_page_of_an_odd_record_is_an_error_that_says_so(release, tmp_path):
    from dpmedian.report import page

    for place, value in ((("cost_explained",), [1]), (("stages", 0, "name"), None), (("notes",), 3)):
        with pytest.raises(ValueError, match=r"the record|stage None: name must be"):
            page(with_value(release.to_dict(), place, value))
