#!/bin/sh
#SBATCH --job-name=evp-nightly
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --output=evp-nightly-%j.log
#SBATCH --requeue
# nightly.sh CONFIG [OPTION...] - a night on one GPU of a cluster: the state folder and the logs are visible there.
#
#   sbatch contrib/slurm/nightly.sh /shared/evp/nightly.json
#   scrontab -e:  0 3 * * * /shared/evicpress/contrib/slurm/nightly.sh /shared/evp/nightly.json
#
# A night that lost its node goes on when Slurm starts it again. OPTIONs are those of evp-nightly.
[ $# -ge 1 ] || { echo 'usage: sbatch nightly.sh CONFIG [OPTION...]' >&2; exit 2; }
config=$1
shift
exec evp-nightly --config "$config" "$@"
