"""Copies a database of Optuna to standard output as a journal: its studies, and the trials of one of them.

fantasia runs it with a Python that has Optuna, 3.0 or later. Standard input is an object of JSON:
{"file": the absolute path of a file of SQLite, or "url": that of another database, "study": a name or "",
"max_attributes": the size in bytes of all user attributes that a study can have}.
The first line of the output is {"fault": ..., "text": ...}; without a fault, the journal follows.
Each connection can only read.
"""

import sys

sys.path[:] = [p for p in sys.path if p]  # not the present directory, which may have an optuna.py

import importlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import warnings  # noqa: E402
from pathlib import Path  # noqa: E402

# The drivers of databases whose URL names none: SQLAlchemy's name, the module, and the package to install.
DRIVERS = {
    "postgresql": [
        ("psycopg2", "psycopg2", "psycopg2-binary"),
        ("psycopg", "psycopg", "psycopg[binary]"),
        ("pg8000", "pg8000", "pg8000"),
    ],
    "mysql": [
        ("pymysql", "pymysql", "PyMySQL"),
        ("mysqldb", "MySQLdb", "mysqlclient"),
        ("mysqlconnector", "mysql.connector", "mysql-connector-python"),
    ],
}
DRIVERS["mariadb"] = DRIVERS["mysql"]
PACKAGES = {module.split(".")[0]: package for drivers in DRIVERS.values() for _, module, package in drivers}
# The variables that hold a password which the URL leaves out, as for the programs of these databases.
PASSWORDS = {"postgresql": "PGPASSWORD", "mysql": "MYSQL_PWD", "mariadb": "MYSQL_PWD"}
# In one transaction, all queries see the same moment.
READ_ONLY = {
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "mysql": "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "mariadb": "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
}
# Tables of SQLite that are made to be large when they are read: views, and those with computed columns.
COMPUTED = """
SELECT name FROM sqlite_master AS s WHERE lower(name) IN ('studies', 'study_directions', 'trials',
    'study_user_attributes', 'study_system_attributes', 'trial_values', 'trial_params',
    'trial_user_attributes', 'trial_system_attributes', 'trial_intermediate_values',
    'version_info', 'alembic_version')
AND (type = 'view' OR type = 'table' AND (rootpage = 0
    OR EXISTS (SELECT 1 FROM pragma_table_xinfo(s.name) WHERE hidden <> 0)))
"""
# Longer system attributes of trials are no constraints.
MAX_CONSTRAINTS = 2000


class Fault(Exception):
    """What keeps a storage from being read: kind is optuna, driver, version, server or storage."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def main():
    """Copy the storage that standard input names."""
    request = json.loads(sys.stdin.buffer.read().decode())
    out = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)  # what a library prints does not get between the lines
    try:
        studies, chosen, trials = read(request)
    except Fault as fault:
        write(out, {"fault": fault.kind, "text": str(fault)})
        return
    write(out, {"fault": "", "text": ""})
    for i, study in enumerate(studies):
        directions = [d.value for d in study.directions]
        write(out, {"op_code": 0, "study_name": study.study_name, "directions": directions})
        if i == chosen:
            write_attributes(out, i, study.user_attrs, request["max_attributes"])
            write_trials(out, i, trials)
    out.close()


def write(out, line):
    """Write a line of JSON, in which numbers may be NaN and infinite, as in Optuna's journals."""
    out.write(json.dumps(line, separators=(",", ":")) + "\n")


def read(request):
    """Return all studies, the place of the wanted one or None, and its trials."""
    warnings.simplefilter("ignore")
    try:
        import optuna
    except ImportError as error:
        raise Fault("optuna", str(error)) from error
    if int(optuna.__version__.split(".")[0]) < 3:
        raise Fault("optuna", f"it has Optuna {optuna.__version__}")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = open_file(request["file"]) if request.get("file") else open_url(request["url"])
        studies = storage.get_all_studies()
        wanted = [i for i, s in enumerate(studies) if s.study_name == request["study"]]
        if not wanted and not request["study"] and len(studies) == 1:
            wanted = [0]
        if not wanted:
            return studies, None, []
        trials = storage.get_all_trials(studies[wanted[0]]._study_id, deepcopy=False)
        return studies, wanted[0], sorted(trials, key=lambda t: t.number)
    except Exception as error:
        raise fault(error, optuna.__version__, bool(request.get("file"))) from error


def open_file(path):
    """Open a file of SQLite, which is not made if it is missing."""
    import sqlite3

    import sqlalchemy
    from optuna.storages import RDBStorage

    def connect():
        connection = sqlite3.connect(Path(path).as_uri() + "?mode=ro", uri=True, isolation_level=None)
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")
        return connection

    connection = connect()
    try:
        damage = connection.execute("PRAGMA quick_check(1)").fetchall()
        computed = [name for (name,) in connection.execute(COMPUTED)]
    except sqlite3.DatabaseError as error:
        if "malformed" not in str(error):
            raise
        damage, computed = [(error,)], []
    finally:
        connection.close()
    if damage != [("ok",)]:
        raise Fault("storage", f"the file is damaged: {damage[0][0]}")
    if computed:
        raise Fault("storage", f"not a storage of Optuna: {', '.join(computed)} is not a plain table")
    storage = RDBStorage("sqlite:///storage", engine_kwargs={"creator": connect}, skip_table_creation=True)
    # The driver itself begins transactions only to write.
    sqlalchemy.event.listen(storage.engine, "begin", lambda c: c.exec_driver_sql("BEGIN"))
    return storage


def open_url(text):
    """Open a database on a server, or any other that SQLAlchemy knows."""
    import sqlalchemy
    from optuna.storages import RDBStorage

    url = sqlalchemy.engine.make_url(text)
    backend, _, driver = url.drivername.partition("+")
    if backend in PASSWORDS and url.password is None:
        url = url.set(password=os.environ.get(PASSWORDS[backend]))
    if not driver and backend in DRIVERS:
        url = url.set(drivername=f"{backend}+{found_driver(backend)}")
    os.environ.setdefault("PGCONNECT_TIMEOUT", "10")

    @sqlalchemy.event.listens_for(sqlalchemy.pool.Pool, "connect")
    def read_only(connection, _):
        if backend in READ_ONLY:
            cursor = connection.cursor()
            cursor.execute(READ_ONLY[backend])
            cursor.close()
            connection.commit()

    return RDBStorage(url.render_as_string(hide_password=False), skip_table_creation=True)


def found_driver(backend):
    """Return the first driver of a database that is installed."""
    import sqlalchemy

    for name, module, _ in DRIVERS[backend]:
        try:
            importlib.import_module(module)
            sqlalchemy.engine.make_url(f"{backend}+{name}://").get_dialect()
        except (ImportError, sqlalchemy.exc.NoSuchModuleError):
            continue
        return name
    raise Fault("driver", DRIVERS[backend][0][2])


def fault(error, version, is_file):
    """Return the fault that an exception of Optuna, SQLAlchemy or a driver is."""
    import sqlalchemy

    if isinstance(error, Fault):
        return error
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    text = str(chain[-1]).strip() or type(chain[-1]).__name__
    if isinstance(chain[-1], ImportError):
        missing = (chain[-1].name or "").split(".")[0]
        return Fault("driver", PACKAGES.get(missing, missing or text))
    if isinstance(error, RuntimeError):  # the schema is of another version, and the text says what to do
        return Fault("version", text)
    unreachable = (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError)
    if not is_file and any(isinstance(e, unreachable) for e in chain):
        return Fault("server", text)
    if any(isinstance(e, sqlalchemy.exc.ProgrammingError) for e in chain) or "no such table" in text:
        return Fault("storage", f"not a storage of Optuna: {text}")
    return Fault("storage", f"Optuna {version} cannot read it: {text}")


def write_attributes(out, study, attributes, limit):
    """Write the user attributes of a study."""
    for name, value in attributes.items():
        if len(json.dumps(value)) > limit:
            value = " " * limit  # too long as well, and named by a note
        write(out, {"op_code": 2, "study_id": study, "user_attr": {name: value}})


def write_trials(out, study, trials):
    """Write the trials of a study, with those attributes that an import needs."""
    from optuna.distributions import CategoricalDistribution, distribution_to_json

    places = {}  # of the choices of each categorical distribution
    for trial in trials:
        params, texts = {}, {}
        for name, value in trial.params.items():
            distribution = trial.distributions[name]
            texts[name] = text = distribution_to_json(distribution)
            if isinstance(distribution, CategoricalDistribution):
                # Not by Optuna's own function, to which 1, 1.0 and True are the same.
                if text not in places:
                    places[text] = {}
                    for place, choice in enumerate(distribution.choices):
                        places[text].setdefault(json.dumps(choice), place)
                params[name] = places[text][json.dumps(value)]
            else:
                params[name] = float(value)
        line = {"op_code": 4, "study_id": study, "number": trial.number, "state": trial.state.value}
        line.update(values=trial.values, params=params, distributions=texts)
        line["user_attrs"] = {k: v for k, v in trial.user_attrs.items() if type(v) in (int, float)}
        line["system_attrs"] = {
            k: v
            for k, v in trial.system_attrs.items()
            if (k == "constraints" or k.startswith("constraints:")) and len(json.dumps(v)) <= MAX_CONSTRAINTS
        }
        write(out, line)


main()
