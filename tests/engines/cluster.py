"""A real Spark cluster on this machine: a master and two workers, with processes of their own."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

HOSTS = ("127.0.0.1", "127.0.0.2")
SETTINGS = {
    "spark_ui_enabled": "false",
    "spark_driver_host": HOSTS[0],
    "spark_driver_bindAddress": HOSTS[0],
    "spark_sql_shuffle_partitions": "2",
    "spark_sql_adaptive_enabled": "false",
    "spark_executor_memory": "512m",
    "spark_driver_memory": "512m",
}


def free_port():
    with socket.socket() as one:
        one.bind((HOSTS[0], 0))
        return one.getsockname()[1]


@contextmanager
def start_cluster(folder, memory="1g", local=None):
    """Yield the address of a master with two workers; stop all of them.

    ``memory`` is what each worker has, ``local`` where workers keep files of their own.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    address = f"spark://{HOSTS[0]}:{port}"
    environment = os.environ | {
        "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOSTS[0],
        "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_DIRS": str(local or folder / "local"),
    }  # fmt: skip

    def run(role, host, *arguments):
        log = (folder / f"{role}-{host}.log").open("wb")
        command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", "--host", host]
        return subprocess.Popen(
            [*map(str, command), *arguments], env=environment, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip

    started = [run("master.Master", HOSTS[0], "--port", str(port), "--webui-port", "0")]
    try:
        wait_for(HOSTS[0], port, started[0])
        started += [
            run("worker.Worker", host, "--cores", "1", "--memory", memory, "--webui-port", "0",
                "--work-dir", str(folder / host), address)
            for host in HOSTS
        ]  # fmt: skip
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_for(host, port, process):
    for _ in range(600):
        assert process.poll() is None, "the master ended"
        with socket.socket() as one:
            one.settimeout(1)
            if one.connect_ex((host, port)) == 0:
                return
        time.sleep(0.2)
    raise TimeoutError("the master does not answer")
