"""`python -m moldau.simulation SEED [COUNT] [--power-loss]`: live through seeds and print the digest of each."""

import argparse

from moldau.simulation.scenarios import run_seed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m moldau.simulation", description="Replay simulated seeds.")
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int, nargs="?", default=1)
    parser.add_argument("--power-loss", action="store_true", help="the machine dies with the broker")
    asked = parser.parse_args()
    for seed in range(asked.seed, asked.seed + asked.count):
        world = run_seed(seed, power_loss=asked.power_loss)
        print(f"seed {seed}: {world.network.delivered} messages in {world.loop.time():.1f} s: {world.digest}")


main()
