# SPDX-License-Identifier: Apache-2.0
"""Which rank this is, from the variables of each launcher."""

import unittest

from tributary.errors import InvalidError
from tributary.launch import Launch, detect


class Launches(unittest.TestCase):
    def test_each_launcher_says_who_this_is_and_where_the_ranks_meet(self):
        torchrun = {"RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "h0", "MASTER_PORT": "29500",
                    "TORCHELASTIC_RESTART_COUNT": "2"}  # fmt: skip
        for environment, expected in (
            ({"TRIB_RANK": "0", "TRIB_SIZE": "2", "TRIB_RENDEZVOUS": "n"}, Launch("trib run", 0, 2, "n")),
            (torchrun, Launch("torchrun", 1, 4, "none-h0-29500-2")),
            (
                {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_MCA_ess_base_jobid": "77"},
                Launch("mpirun of Open MPI", 3, 4, "77"),
            ),
            (
                {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "PMIX_NAMESPACE": "prterun-h-1@1"},
                Launch("mpirun of Open MPI 5", 3, 4, "prterun-h-1@1"),
            ),
            ({"PMI_RANK": "0", "PMI_SIZE": "4"}, Launch("mpiexec of MPICH", 0, 4, None)),
            (
                {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"},
                Launch("srun", 5, 8, "12-0"),
            ),
        ):
            self.assertEqual(detect(environment), expected)

    def test_the_inner_launcher_counts_and_a_name_of_the_users_wins(self):
        slurm = {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}
        inner = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_MCA_ess_base_jobid": "77"}
        self.assertEqual(detect({**slurm, **inner}).rank, 3)
        self.assertEqual(detect({**slurm, **inner, "TRIB_RENDEZVOUS": "mine"}).rendezvous, "mine")

    def test_programs_of_torchrun_on_two_machines_do_not_meet_under_its_defaults(self):
        torchrun = {"RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none", "MASTER_PORT": "29500", "TORCHELASTIC_RESTART_COUNT": "0"}
        with open("/proc/sys/kernel/random/boot_id") as boot:
            machine = boot.read().strip()
        for address in ("127.0.0.1", "localhost", "::1"):
            name = detect({**torchrun, "MASTER_ADDR": address}).rendezvous
            self.assertTrue(name.startswith(f"none-{address}-29500-0-{machine}-"), name)
            self.assertEqual(detect({**torchrun, "MASTER_ADDR": address, "RANK": "0"}).rendezvous, name)

    def test_no_launcher_and_no_numbers_are_told(self):
        with self.assertRaisesRegex(InvalidError, "trib run -n RANKS"):
            detect({})
        with self.assertRaisesRegex(InvalidError, "TRIB_RANK=x is not a number"):
            detect({"TRIB_RANK": "x", "TRIB_SIZE": "2"})

    def test_half_of_a_launch_is_told_and_an_empty_variable_is_none(self):
        slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"}
        for name, missing in (("TRIB_RANK", "TRIB_SIZE"), ("TRIB_SIZE", "TRIB_RANK")):
            with self.assertRaisesRegex(InvalidError, f"{name} is set and {missing} is not"):
                detect({**slurm, name: "1", missing: ""})
        self.assertEqual(detect({**slurm, "TRIB_RANK": "", "TRIB_RENDEZVOUS": ""}), Launch("srun", 5, 8, "12-0"))


if __name__ == "__main__":
    unittest.main()
