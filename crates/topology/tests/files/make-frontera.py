"""Writes a topology.conf of Frontera's shape: python3 make-frontera.py > frontera.conf (see README.md)."""

RACKS, LEAVES_OF_A_RACK, HOSTS_OF_A_LEAF, CORES = 91, 2, 44, 6

print("# 91 racks of 88 hosts: a leaf switch for each half of a rack, three links of 200 Gbit/s from it to each of six cores.")
for rack in range(1, RACKS + 1):
    for half in range(LEAVES_OF_A_RACK):
        leaf = (rack - 1) * LEAVES_OF_A_RACK + half + 1
        first = half * HOSTS_OF_A_LEAF + 1
        print(f"SwitchName=leaf{leaf:03} Nodes=c{rack:03}-[{first:03}-{first + HOSTS_OF_A_LEAF - 1:03}] LinkSpeed=100")
for core in range(1, CORES + 1):
    print(f"SwitchName=core{core} Switches=leaf[001-{RACKS * LEAVES_OF_A_RACK:03}] LinkSpeed=600")
