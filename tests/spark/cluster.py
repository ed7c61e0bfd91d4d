"""Spark on this machine in processes of its own: a master and two workers, or a Connect server."""

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
    port = free_port()
    address = f"spark://{HOSTS[0]}:{port}"
    environment = {
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(local or folder / "local"),
    }

    def run(role, host, *arguments):
        told = [f"org.apache.spark.deploy.{role}", "--host", host, "--webui-port", "0", *arguments]
        return start_java(folder, f"{role}-{host}", told, **environment)

    started = [run("master.Master", HOSTS[0], "--port", str(port))]
    try:
        assert answers(HOSTS[0], port, started[0]), "the master ended"
        started += [
            run(
                "worker.Worker",
                host,
                "--cores",
                "1",
                "--memory",
                memory,
                "--work-dir",
                str(folder / host),
                address,
            )
            for host in HOSTS
        ]
        yield address
    finally:
        stop_all(started)


@contextmanager
def start_connect(folder, n_tries=3):
    """Yield the address of a Spark Connect server with two threads; stop it.

    ``remote("local[2]")`` would start one in this process, always on port 15002, which whatever
    else runs here may have taken. A port that was free may be taken before the server has it:
    then it ends, and the next one tries another.
    """
    settings = {name.replace("_", "."): value for name, value in SETTINGS.items()}
    started = []
    try:
        for at in range(n_tries):
            port = free_port()
            settings |= {
                "spark.master": "local[2]",
                "spark.connect.grpc.binding.port": port,
                "spark.connect.grpc.binding.address": HOSTS[0],
            }
            told = [f"--conf={name}={value}" for name, value in settings.items()]
            server = "org.apache.spark.sql.connect.service.SparkConnectServer"
            told = [
                "org.apache.spark.deploy.SparkSubmit",
                *told,
                "--class",
                server,
                "spark-internal",
            ]
            started.append(start_java(folder, f"connect-{at}", told))
            if answers(HOSTS[0], port, started[-1]):
                break
        else:
            raise RuntimeError((folder / f"connect-{at}.log").read_text()[-2000:])
        yield f"sc://{HOSTS[0]}:{port}"
    finally:
        stop_all(started)
        # A client leaves it behind, and then no session but a remote one can be made.
        os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)


def start_java(folder, name, told, **environment):
    """A process of Spark that works and logs in the folder."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment |= {
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOSTS[0],
    }
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *told],
            env=os.environ | environment,
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def stop_all(started):
    for process in reversed(started):
        process.terminate()
    for process in started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(host, port, process):
    """Wait until a port answers; whether it does before the process ends.

    A process that lives may take minutes where many others want the same cores.
    """
    for _ in range(6000):
        if process.poll() is not None:
            return False
        with socket.socket() as one:
            one.settimeout(1)
            if one.connect_ex((host, port)) == 0:
                return True
        time.sleep(0.2)
    raise TimeoutError(f"no answer from port {port}")
