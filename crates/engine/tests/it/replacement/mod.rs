//! Members of stateful workloads on ailing nodes: what upstream's own tests ask for, where its faults lie, and every way a
//! small world can go.

mod budget;
mod conformance;
mod counted;
mod course;
mod defects;
mod differences;
mod fixtures;
mod fleet;
mod model;
mod scale;
mod seed;
mod suites;
mod withdrawn;
