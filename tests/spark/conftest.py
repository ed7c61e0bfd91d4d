"""Which law runs on which engine: see `test_tables`."""

import os

FULL = os.environ.get("ODDSLIP_SPARK") == "full"


def pytest_configure(config):
    config.addinivalue_line("markers", "mainly(*engines): `make test-spark` runs it on all engines")
    config.addinivalue_line("markers", "needs(*engines): makes no sense elsewhere")
    config.addinivalue_line("markers", "connect: runs through Spark Connect in `make test-all` too")
    config.addinivalue_line("markers", "full: only `make test-spark` runs it")


def pytest_collection_modifyitems(config, items):
    def stays(item):
        engine = getattr(item, "callspec", None) and item.callspec.params.get("tables")
        if engine is None:
            return True
        if any(engine not in mark.args for mark in item.iter_markers("needs")):
            return False
        if FULL:
            return True
        if engine == "connect":
            return item.get_closest_marker("connect") is not None
        mainly = item.get_closest_marker("mainly")  # that of a parameter comes first
        full = item.get_closest_marker("full") is not None
        return not full and (mainly is None or engine in mainly.args)

    deselected = [item for item in items if not stays(item)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if stays(item)]
