"""The paper's survey (Table S7): what implementations do with a label that is never true."""
