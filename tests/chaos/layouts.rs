//! How policies divide nodes into slots.

/// A division of a node, with its result on a node of 8 CPUs.
pub struct Division {
    pub text: &'static str,
    /// The number of static slots.
    pub fixed: usize,
    pub partitionable: usize,
    /// The CPUs of the largest slot, which also has the node's GPU.
    pub largest: i64,
}

/// The divisions, by number. The first has no text: the default division.
pub const LAYOUTS: [Division; 5] = [
    Division { text: "", fixed: 0, partitionable: 1, largest: 8 },
    Division {
        text: "NUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=1, memory=10%, disk=10%, swap=10%, gpus=0\nSLOT_TYPE_1_PARTITIONABLE = False\n\
               NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = gpus=1\nSLOT_TYPE_2_PARTITIONABLE = True\n",
        fixed: 2,
        partitionable: 1,
        largest: 6,
    },
    Division {
        text: "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 50%, gpus=1\nSLOT_TYPE_1_PARTITIONABLE = True\n\
               NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = 50%, gpus=0\nSLOT_TYPE_2_PARTITIONABLE = True\n",
        fixed: 0,
        partitionable: 2,
        largest: 4,
    },
    Division {
        text: "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 50%, gpus=1\nSLOT_TYPE_1_PARTITIONABLE = False\n\
               NUM_SLOTS_TYPE_2 = 2\nSLOT_TYPE_2 = 25%, gpus=0\nSLOT_TYPE_2_PARTITIONABLE = False\n",
        fixed: 3,
        partitionable: 0,
        largest: 4,
    },
    Division {
        text: "NUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = cpus=2, memory=20%, disk=20%, swap=20%, gpus=0\nSLOT_TYPE_1_PARTITIONABLE = True\n\
               NUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = cpus=3, memory=20%, disk=20%, swap=20%, gpus=1\nSLOT_TYPE_2_PARTITIONABLE = False\n\
               NUM_SLOTS_TYPE_3 = 1\nSLOT_TYPE_3 = cpus=1, memory=20%, disk=20%, swap=20%, gpus=0\nSLOT_TYPE_3_PARTITIONABLE = False\n",
        fixed: 2,
        partitionable: 2,
        largest: 3,
    },
];

/// A division that asks for more than any node has.
pub const UNFIT: &str = "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = cpus=99\n";
