"""Records that can be authenticated: digests, the chain of a ledger, and signatures. Every change is found."""

import json
import math
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import dpmedian
from contract.registry import cloud
from dpmedian.accounting import PrivacyCost
from dpmedian.cli import main
from dpmedian.digests import canonical, digest_of, sealed
from dpmedian.ledger import BrokenChain, Ledger
from test_verify import with_value


def concentrated(rho):
    return PrivacyCost(mu_squared=2.0 * rho)


def wrong_of(*arguments, **options):
    return " | ".join(dpmedian.verify(*arguments, **options).wrong)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("ledgers") / "ledger.json"


@pytest.fixture(scope="module")
def release(place):
    ledger = Ledger(rho=4.0, path=place)
    ledger.charge("before", "dpgd", concentrated(0.1)).mark("released")
    return dpmedian.geometric_median(cloud(3000, 2, seed=1), rho=0.5, ledger=ledger, name="homes")


# Digests.


def test_a_digest_depends_on_the_values_and_not_on_how_they_are_written():
    """Another program may sort the names, write 1.0 as 1 and other escapes."""
    one = {"b": 1.0, "a": [1e22, 0.1, -0.0, 1e-7], "c": "Zürich"}
    text = '{"a":[10000000000000000000000, 1.0e-1, 0, 0.0000001],  "c":"Z\\u00fcrich", "b":1}'
    assert digest_of(json.loads(text)) == digest_of(one)
    assert canonical({"x": 2.0**53 + 2.0}) == b'{"x":9007199254740994}'
    for other in ({**one, "b": math.nextafter(1.0, 2.0)}, {**one, "c": "Zurich"}, {**one, "a": one["a"][::-1]}):
        assert digest_of(other) != digest_of(one)
    with pytest.raises(ValueError, match="not JSON compliant"):
        digest_of({"x": math.nan})


def test_every_record_ends_with_its_digest(release):
    plan = dpmedian.plan(3000, 2, rho=0.5)
    groups = dpmedian.geometric_medians(cloud(4000, 2, seed=0), ["a", "b"] * 2000, keys=["a", "b"], rho=0.5)
    places = dpmedian.k_medians(cloud(3000, 2, seed=0), 2, rho=0.5)
    failed = dpmedian.ReleaseFailed("lost", plan.cost, plan=plan)
    for recorded in (release, plan, groups, groups.plan, places, failed):
        record = recorded.to_dict()
        assert list(record)[-1] == "digest"
        assert record["digest"] == recorded.digest == digest_of(json.loads(recorded.to_json()))
    assert all("digest" not in plan for plan in groups.to_dict()["plans"])
    # A record that is read back is the same, including its digest.
    assert dpmedian.Release.from_json(release.to_json()).digest == release.digest


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (("point", 0), 17.0),
        (("date",), "2020-01-01T00:00:00+00:00"),
        (("moments", "curvature"), 1.0),
        (("error_radius",), 1e-9),
        (("name",), "schools"),
        (("notes",), ["trust me"]),
    ],
)
def test_a_value_that_follows_from_nothing_else_is_found_by_the_digest_and_by_the_ledger(release, place, at, value):
    changed = with_value(release.to_dict(), at, value)
    assert "at least one value was changed after the record was made" in wrong_of(changed)
    # A person who changes a record can compute its digest again: without a ledger nothing is wrong, and the verdict
    # says so.
    again = sealed(changed)
    found = dpmedian.verify(again)
    assert found.holds
    assert "Not authenticated: the released values, the moments, the notes, the name and the date" in str(
        found
    ).replace("\n", " ")
    assert "no entry of the ledger has the digest of this record" in wrong_of(again, place)


def test_the_record_of_a_run_is_authenticated_by_its_ledger(release, place):
    for ledger in (place, str(place), Ledger.open(place)):
        found = dpmedian.verify(release, ledger)
        assert found.holds
        assert found.authenticated == ("the ledger ledger.json",)
        assert str(found).endswith("The claim holds. It is authenticated by the ledger ledger.json.")
    memory = Ledger(rho=1.0)
    point = dpmedian.geometric_median(cloud(3000, 2, seed=0), rho=0.5, ledger=memory)
    assert dpmedian.verify(point, memory).authenticated == ("the ledger",)


def test_a_ledger_that_never_saw_a_record_refutes_it(release, tmp_path):
    other = Ledger(rho=4.0, path=tmp_path / "other.json")
    assert "this ledger was not charged for the record" in wrong_of(release, other)
    # The ledger is charged for another release with the same name and the same cost.
    dpmedian.geometric_median(cloud(3000, 2, seed=1), rho=0.5, ledger=other, name="homes")
    early = sealed({**release.to_dict(), "date": "2001-01-01T00:00:00+00:00"})
    assert "was not charged for the record" in wrong_of(early, other)  # It was charged later than the record says.
    later = sealed({**release.to_dict(), "date": "2100-01-01T00:00:00+00:00"})
    assert "the point, the date, the moments or another value was changed" in wrong_of(later, other)


def test_failures_groups_clusters_and_plans_are_in_their_ledger_too(tmp_path):
    ledger = Ledger(rho=10.0, path=tmp_path / "ledger.json")
    points = np.random.default_rng(0).normal(size=(120, 3)) + 1e12
    failed = None
    for seed in range(30):
        try:
            dpmedian.geometric_median(points, rho=0.2, seed=seed, ledger=ledger, name="lost")
        except dpmedian.ReleaseFailed as error:
            failed = error
            break
    assert failed is not None
    record = sealed({**failed.to_dict(), "seeded": False})
    assert "no entry of the ledger has the digest" in wrong_of(record, ledger)
    assert [text for text in dpmedian.verify(failed, ledger).wrong if "seed" not in text] == []
    groups = dpmedian.geometric_medians(
        cloud(4000, 2, seed=0), ["a", "b"] * 2000, keys=["a", "b"], rho=0.5, neighbours="replace", ledger=ledger
    )
    places = dpmedian.k_medians(cloud(3000, 2, seed=0), 2, rho=0.5, ledger=ledger)
    for recorded in (groups, places, groups.plan, places.plan):
        assert dpmedian.verify(recorded, ledger).authenticated, str(dpmedian.verify(recorded, ledger))
    assert "no entry of the ledger was charged for this plan" in wrong_of(dpmedian.plan(3000, 2, rho=0.4), ledger)


def test_an_outcome_that_is_not_that_of_the_ledger_is_wrong():
    """Two entries with one digest would be one record for two charges."""
    ledger = Ledger(rho=4.0)
    point = dpmedian.geometric_median(cloud(3000, 2, seed=0), rho=0.5, ledger=ledger)
    ledger.charge("geometric median", "adaptive", point.cost).mark("released", digest=point.digest)
    assert "a run is charged once" in wrong_of(point, ledger)
    other = Ledger(rho=4.0)
    other.charge("geometric median", "adaptive", point.cost).mark("failed", digest=point.digest)
    assert "the record says 'released', but the ledger says 'failed'" in wrong_of(point, other)


def test_a_run_whose_end_was_not_noted_authenticates_nothing():
    ledger = Ledger(rho=4.0)
    point = dpmedian.geometric_median(cloud(3000, 2, seed=0), rho=0.5)
    ledger.charge("geometric median", "adaptive", point.cost, record=point.plan.to_dict())
    later = sealed({**point.to_dict(), "date": "2100-01-01T00:00:00+00:00"})
    assert "it has no digest, and its state is 'pending'" in wrong_of(later, ledger)


# Versions.


def test_a_record_of_an_unknown_version_is_never_silently_accepted(tmp_path, capsys):
    record, file = dpmedian.plan(3000, 2, rho=0.5).to_dict(), tmp_path / "record.json"
    for version, code in (("9.9", 6), ("", 6), ("0.2.0.dev1", 6), ("0.1.0", 0)):
        file.write_text(json.dumps(sealed({**record, "version": version})))
        assert main(["verify", str(file)]) == code
        out, err = capsys.readouterr()
        assert "does not know the version" in out if code else "The claim holds if the record names all stages." in out
        assert err.startswith("dpmedian: refuted" if code else "dpmedian: warning")


def test_a_record_of_a_former_version_has_no_digest_and_one_of_this_version_must_have_one():
    record = dpmedian.plan(3000, 2, rho=0.5).to_dict()
    del record["digest"]
    assert "the record has no digest, but version" in wrong_of(record)
    assert wrong_of({**record, "version": "0.1.0"}) == ""


def test_a_ledger_of_a_former_version_knows_a_record_by_name_cost_and_date_only(tmp_path):
    point = dpmedian.geometric_median(cloud(3000, 2, seed=0), rho=0.5, name="homes")
    record = {**point.to_dict(), "version": "0.1.0"}
    del record["digest"]
    entry = {
        "name": "homes",
        "method": "adaptive",
        "time": record["date"],
        "cost": point.cost.to_dict(),
        "state": "released",
        "remaining": 0.5,
        "seeded": False,
        "record": {**point.plan.to_dict(), "version": "0.1.0"},
    }
    stored = {"format": "dpmedian ledger 2", "budget": {"rho": 1.0}, "composition": "concentrated"}
    stored |= {"neighbours": "replace", "unit": "record", "entries": [entry]}
    path = tmp_path / "ledger.json"
    path.write_text(json.dumps(stored))
    found = dpmedian.verify(record, path)
    assert found.holds
    assert found.authenticated == ()
    assert any("the entry has no digest, because former versions wrote none" in note for note in found.notes)
    assert any(
        "the first 1 entries of the ledger were written by a version without a chain of digests" in n
        for n in found.notes
    )
    assert "was not charged for the record" in wrong_of({**record, "name": "schools"}, path)
    assert "was not charged for the record" in wrong_of({**record, "date": "2001-01-01T00:00:00+00:00"}, path)
    # A charge turns it into a chain, and the earlier entries stay.
    ledger = Ledger.open(path)
    ledger.charge("next", "dpgd", concentrated(0.1)).mark("released")
    assert json.loads(path.read_text())["format"] == "dpmedian ledger 3"
    assert [(e.name, e.state) for e in Ledger.open(path).entries] == [("homes", "released"), ("next", "released")]
    assert (Ledger.open(path).taken_over, dpmedian.verify(record, path).holds) == (1, True)


# The chain.


def filled(path):
    ledger = Ledger(rho=4.0, path=path)
    first = ledger.charge("first", "dpgd", concentrated(0.1), record={"n": 3})
    ledger.charge("second", "dpgd", concentrated(0.2)).mark("failed")
    first.mark("released", digest="sha256:00")
    ledger.charge("third", "dpgd", concentrated(0.3))
    return json.loads(path.read_text())


def broken(path, stored):
    path.write_text(json.dumps(stored))
    try:
        Ledger.open(path)
    except ValueError as error:
        return str(error)
    return ""


def test_every_removed_moved_or_changed_line_is_found(tmp_path):
    path = tmp_path / "ledger.json"
    stored = filled(path)
    log = stored["log"]
    assert len(log) == 5
    assert broken(path, stored) == ""
    for number in range(len(log)):
        assert broken(path, {**stored, "log": log[:number] + log[number + 1 :]}), f"line {number} was removed"
        assert broken(path, {**stored, "log": log[: number + 1] + log[number:]}), f"line {number} was doubled"
        for other in range(number):
            moved = log.copy()
            moved[number], moved[other] = moved[other], moved[number]
            assert broken(path, {**stored, "log": moved}), f"lines {other} and {number} were exchanged"
    for number in range(len(log)):
        assert broken(path, {**stored, "log": log[:number]}), "the end was removed"
    assert broken(path, {**stored, "log": []})


def test_every_changed_value_of_a_ledger_is_found(tmp_path):
    path = tmp_path / "ledger.json"
    stored = filled(path)

    def places(value, at=()):
        if isinstance(value, dict):
            for name, part in value.items():
                yield from places(part, (*at, name))
        elif isinstance(value, list):
            for number, part in enumerate(value):
                yield from places(part, (*at, number))
        else:
            yield at

    rng, tried = random.Random(0), 0
    for at in places(stored):
        part = stored
        for step in at:
            part = part[step]
        for value in ("x", 0.15, 1, None, True, rng.random()):
            if value != part or type(value) is not type(part):
                tried += 1
                assert broken(path, with_value(stored, at, value)), (at, value)
    assert tried > 100


def test_a_ledger_that_does_not_fit_together_is_never_charged_and_refutes_records(release, place, tmp_path, capsys):
    path, record = tmp_path / "ledger.json", tmp_path / "record.json"
    path.write_text(place.read_text().replace('"before"', '"Before"'))
    record.write_text(release.to_json())
    text = path.read_text()
    for call in (lambda: Ledger.open(path), lambda: Ledger(rho=4.0, path=path)):
        with pytest.raises(BrokenChain, match=r"is not consistent: line 0 .* Restore the ledger from a backup"):
            call()
    opened = Ledger(rho=4.0, path=tmp_path / "another.json")
    (tmp_path / "another.json").write_text(text)
    with pytest.raises(BrokenChain):
        opened.charge("next", "dpgd", concentrated(0.1))
    assert path.read_text() == text
    assert "is not consistent" in wrong_of(release, path)
    assert main(["verify", str(record), "--ledger", str(path)]) == 6
    assert "WRONG  the ledger is consistent" in capsys.readouterr().out
    assert main(["ledger", "show", str(path)]) == 2


def test_a_new_ledger_on_the_same_terms_is_not_the_one_that_was_opened(tmp_path):
    """Somebody deletes the file of a full ledger and creates it again: a process that opened the old one notices."""
    path = tmp_path / "ledger.json"
    ledger = Ledger(rho=1.0, path=path)
    ledger.charge("all", "dpgd", concentrated(1.0))
    path.unlink()
    Ledger(rho=1.0, path=path)
    with pytest.raises(ValueError, match="was replaced by another ledger"):
        ledger.charge("again", "dpgd", concentrated(1.0))


def test_the_head_stands_for_the_history(tmp_path):
    """A person who can write the file can make another chain, but not one with the head that somebody has noted."""
    ledger = Ledger(rho=4.0, path=tmp_path / "ledger.json")
    heads = {ledger.head}
    for name in ("a", "b"):
        charge = ledger.charge(name, "dpgd", concentrated(0.1))
        heads.add(ledger.head)
        charge.mark("released")
        heads.add(ledger.head)
    assert len(heads) == 5
    assert ledger.to_dict()["head"] == ledger.head
    assert Ledger(rho=4.0).head != Ledger(rho=4.0).head


# Pages.


def test_a_page_takes_no_ledger_that_never_saw_the_release(release, place, tmp_path, capsys):
    other, record, page = tmp_path / "other.json", tmp_path / "record.json", tmp_path / "page.html"
    Ledger(rho=4.0, path=other)
    record.write_text(release.to_json())
    assert main(["report", str(record), str(page), "--ledger", str(other)]) == 2
    assert "this ledger was not charged for the release" in capsys.readouterr().err
    assert not page.exists()
    assert main(["report", str(record), str(page), "--ledger", str(place)]) == 0
    assert "homes" in page.read_text()
    # The page of a plan shows what the ledger has spent, although nothing was charged for the plan.
    release.plan.report(page, ledger=Ledger.open(other))


# Signatures.


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives import serialization

    folder = tmp_path_factory.mktemp("keys")
    for name in ("one", "two"):
        key = ed25519.Ed25519PrivateKey.generate()
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        (folder / f"{name}.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(public)
    return folder


def test_a_signature_is_by_one_key_and_of_one_content(release, keys, tmp_path, capsys):
    record, signed = tmp_path / "record.json", tmp_path / "signed.json"
    record.write_text(release.to_json())
    assert main(["sign", str(record), "--key", str(keys / "one.pem")]) == 0
    signed.write_text(capsys.readouterr().out)
    found = dpmedian.verify(signed, key=keys / "one.pub")
    assert found.holds
    assert str(found).replace("\n", " ").endswith("authenticated by the signature of the key one.pub.")
    told = json.loads(signed.read_text())
    assert told["digest"] == release.digest
    assert dpmedian.Release.from_json(signed.read_text()).digest == release.digest
    not_this = "the signature does not match this content and this key"
    assert not_this in wrong_of(signed, key=keys / "two.pub")
    assert not_this in wrong_of(
        sealed({**told, "date": "2020-01-01T00:00:00+00:00"}) | {"signature": told["signature"]}, key=keys / "one.pub"
    )
    for odd in ("", "zz", 3, None, "00" * 64):
        assert not_this in wrong_of({**told, "signature": {**told["signature"], "value": odd}}, key=keys / "one.pub")
    for odd in (None, {}, [], {"algorithm": "none", "value": ""}):
        assert "no Ed25519 signature" in wrong_of({**told, "signature": odd}, key=keys / "one.pub")
    assert main(["verify", str(signed), "--key", str(keys / "one.pub")]) == 0
    assert main(["verify", str(record), "--key", str(keys / "one.pub")]) == 6
    assert main(["verify", str(signed), "--key", str(keys / "one.pem")]) == 2
    assert main(["sign", str(record), "--key", str(keys / "one.pub")]) == 2
    text = (keys / "one.pem").read_text().splitlines()[1]
    assert text not in capsys.readouterr().err


def test_what_does_not_hold_is_not_signed(release, keys, tmp_path, capsys):
    record = tmp_path / "record.json"
    record.write_text(json.dumps(with_value(release.to_dict(), ("point", 0), 17.0)))
    assert main(["sign", str(record), "--key", str(keys / "one.pem")]) == 6
    assert re.search("is not signed: .* was changed", capsys.readouterr().err)


def test_a_digest_needs_no_library_and_a_signature_says_which(release, tmp_path):
    """Without `cryptography`, everything except signatures works."""
    (tmp_path / "record.json").write_text(release.to_json())
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import dpmedian\n"
        "from pathlib import Path\n"
        "assert dpmedian.verify(Path('record.json')).holds\n"
        "try: dpmedian.verify(Path('record.json'), key='x')\n"
        "except ImportError as error: print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "pip install 'dpmedian[sign]'" in ran.stdout
