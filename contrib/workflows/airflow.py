"""airflow.py - a night as an Airflow DAG, on a worker of the engine's machine (queue "serving"), whose user owns the tiers."""
import datetime

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator

with DAG(
    "evicpress_nightly",
    schedule="0 3 * * *",
    start_date=datetime.datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    default_args={"queue": "serving", "retries": 0, "execution_timeout": datetime.timedelta(hours=12)},
) as dag:
    drill = BashOperator(task_id="dry_run", bash_command="evp-nightly --config /etc/evp/nightly.json --dry-run")
    # 1: something was left out, which the next night tries again
    night = BashOperator(task_id="night", bash_command="evp-nightly --config /etc/evp/nightly.json || [ $? = 1 ]")
    drill >> night
