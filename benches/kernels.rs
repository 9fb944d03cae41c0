//! Benches of the kernels; ids carry n and d. Run with `cargo bench`.

use criterion::{Criterion, criterion_group, criterion_main};

fn kernels(_criterion: &mut Criterion) {}

criterion_group!(benches, kernels);
criterion_main!(benches);
