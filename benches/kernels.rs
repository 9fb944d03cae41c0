//! Benches of the kernels; ids carry n and d. Run with `cargo bench`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dpmedian::pulse::Silent;
use dpmedian::sampler::DiscreteGaussian;
use dpmedian::{ball, gradient, median, objective};
use nalgebra::DMatrix;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Records whose coordinates are sums of twelve uniform numbers, nearly normal.
fn records(n: usize, d: usize) -> DMatrix<f64> {
    let mut rng = ChaCha20Rng::seed_from_u64((n + d) as u64);
    DMatrix::from_fn(d, n, |_, _| (0..12).map(|_| f64::from(rng.next_u32()) / 4294967296.0).sum::<f64>() - 6.0)
}

fn id(points: &DMatrix<f64>) -> BenchmarkId {
    BenchmarkId::from_parameter(format!("n={},d={}", points.ncols(), points.nrows()))
}

fn balls(criterion: &mut Criterion) {
    let radii: Vec<f64> = (0..20).map(|k| 1e-3 * f64::from(1 << k)).collect();
    let mut group = criterion.benchmark_group("ball_counts");
    for (n, d) in [(10_000, 2), (10_000, 3), (10_000, 10), (10_000, 100), (3_000, 200)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| b.iter(|| ball::counts(points.as_view(), &radii, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("ball_counts_pairwise");
    for (n, d) in [(10_000, 2), (10_000, 3)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| b.iter(|| ball::pairwise_counts(points.as_view(), &radii, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("top_sums");
    let points = records(10_000, 2);
    let counts = ball::counts(points.as_view(), &radii, &mut Silent).expect("nothing interrupts");
    group.bench_function(id(&points), |b| b.iter(|| ball::top_sums(black_box(&counts), 7_500)));
    group.finish();
}

fn sums(criterion: &mut Criterion) {
    let shapes = [(1_000_000, 3), (1_000_000, 10), (100_000, 100), (3_000, 200)];
    let mut group = criterion.benchmark_group("gradient");
    for (n, d) in shapes {
        let (points, theta) = (records(n, d), vec![0.1; d]);
        group.throughput(Throughput::Bytes((8 * n * d) as u64));
        group.bench_function(id(&points), |b| b.iter(|| gradient::gradient(points.as_view(), &theta, 32, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("objective");
    for (n, d) in shapes {
        let (points, theta) = (records(n, d), vec![0.1; d]);
        group.throughput(Throughput::Bytes((8 * n * d) as u64));
        group.bench_function(id(&points), |b| b.iter(|| objective::objective(points.as_view(), &theta, &mut Silent)));
    }
    group.finish();
}

fn solver(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("geometric_median");
    for (n, d) in [(3_000, 200), (100_000, 10)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| b.iter(|| median::geometric_median(points.as_view(), &mut Silent)));
    }
    group.finish();
}

fn samplers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("discrete_gaussian");
    let gaussian = DiscreteGaussian::new(1 << 40).expect("a positive sigma");
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    group.throughput(Throughput::Elements(1));
    group.bench_function("sigma=2^40", |b| b.iter(|| gaussian.sample(&mut rng)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = balls, sums, solver, samplers
}
criterion_main!(benches);
