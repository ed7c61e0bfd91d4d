"""Which law runs on which engine: see `test_tables`."""

import os

FULL = os.environ.get("ODDSLIP_SPARK") == "full"


def pytest_configure(config):
    config.addinivalue_line("markers", "mainly(*engines): enough to run it there, unless in full")
    config.addinivalue_line("markers", "needs(*engines): makes no sense elsewhere")
    config.addinivalue_line("markers", "connect: runs through Spark Connect too, not in full alone")
    config.addinivalue_line("markers", "slow: runs in full alone")


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
        slow = item.get_closest_marker("slow") is not None
        return not slow and (mainly is None or engine in mainly.args)

    left_out = [item for item in items if not stays(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if stays(item)]
