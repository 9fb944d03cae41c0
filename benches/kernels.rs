//! Benches of the kernels. Their ids contain n and d. `cargo bench` runs them.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dpmedian_core::mechanism::descent::Descent;
use dpmedian_core::nonprivate::{median, objective};
use dpmedian_core::postprocess::projection::{Ball, Feasible};
use dpmedian_core::release::sample;
use dpmedian_core::release::sensitivity::Neighbours;
use dpmedian_core::release::streams::Streams;
use dpmedian_core::release::tape::{Draw, Tape};
use dpmedian_core::runtime::points::Points;
use dpmedian_core::runtime::pulse::Silent;
use dpmedian_core::sampler::{BernoulliExp, DiscreteGaussian, DiscreteLaplace, Geometric, uniform};
use dpmedian_core::statistics::curvature::Curvature;
use dpmedian_core::statistics::directions::GradientAndDirections;
use dpmedian_core::statistics::distance_counts::DistanceCounts;
use dpmedian_core::statistics::gradient::Gradient;
use dpmedian_core::statistics::hessian::Hessian;
use dpmedian_core::statistics::pair_counts::PairCounts;
use dpmedian_core::statistics::ranks::Ranks;
use dpmedian_core::statistics::{Issued, ball_counts};
use nalgebra::DMatrix;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Records whose coordinates are sums of twelve uniform numbers, and so nearly normal.
fn records(n: usize, d: usize) -> DMatrix<f64> {
    let mut rng = ChaCha20Rng::seed_from_u64((n + d) as u64);
    DMatrix::from_fn(d, n, |_, _| (0..12).map(|_| f64::from(rng.next_u32()) / 4294967296.0).sum::<f64>() - 6.0)
}

fn admitted(points: &DMatrix<f64>) -> Points<'_> {
    Points::admit(points, None, None, &mut Silent).expect("records are finite")
}

fn tape() -> Draw {
    Draw::new(Streams::from_key([1; 32]), Neighbours::Replace)
}

fn id(points: &DMatrix<f64>) -> BenchmarkId {
    BenchmarkId::from_parameter(format!("n={},d={}", points.ncols(), points.nrows()))
}

fn balls(criterion: &mut Criterion) {
    let radii: Vec<f64> = (0..20).map(|k| 1e-3 * f64::from(1 << k)).collect();
    let mut group = criterion.benchmark_group("ball_counts");
    for (n, d) in [(10_000, 2), (10_000, 3), (10_000, 10), (10_000, 100), (3_000, 200)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| b.iter(|| ball_counts::counts(points.as_view(), &radii, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("ball_counts_pairwise");
    for (n, d) in [(10_000, 2), (10_000, 3)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| {
            b.iter(|| ball_counts::pairwise_counts(points.as_view(), &radii, &mut Silent))
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("top_sums");
    let points = records(10_000, 2);
    let counts = ball_counts::counts(points.as_view(), &radii, &mut Silent).expect("nothing interrupts");
    group.bench_function(id(&points), |b| b.iter(|| ball_counts::top_sums(black_box(&counts), 7_500)));
    group.finish();
}

fn sums(criterion: &mut Criterion) {
    let shapes = [(1_000_000, 3), (1_000_000, 10), (100_000, 100), (3_000, 200)];
    let mut group = criterion.benchmark_group("gradient");
    for (n, d) in shapes {
        let records = records(n, d);
        let (points, gradient) =
            (admitted(&records), Issued::new(Gradient::new(&vec![0.1; d], 32).expect("a lattice")));
        group.throughput(Throughput::Bytes((8 * n * d) as u64));
        group.bench_function(id(&records), |b| b.iter(|| gradient.answer(&points, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("objective");
    for (n, d) in shapes {
        let (points, theta) = (records(n, d), vec![0.1; d]);
        group.throughput(Throughput::Bytes((8 * n * d) as u64));
        group.bench_function(id(&points), |b| b.iter(|| objective::objective(&admitted(&points), &theta, &mut Silent)));
    }
    group.finish();
}

fn moments(criterion: &mut Criterion) {
    for (n, d) in [(1_000_000, 3), (1_000_000, 10), (100_000, 100), (10_000, 300)] {
        let (records, theta, radius) = (records(n, d), vec![0.1; d], 1.5 * (d as f64 / 10.0).sqrt());
        let points = admitted(&records);
        let queries = [
            Issued::new(Hessian::new(&theta, radius, 1.0, 32).expect("a lattice")),
            Issued::new(GradientAndDirections::new(&theta, 0.5, 32).expect("a lattice")),
        ];
        for query in queries {
            let mut group = criterion.benchmark_group(query.name());
            group.throughput(Throughput::Bytes((8 * n * d) as u64));
            group.bench_function(id(&records), |b| b.iter(|| query.answer(&points, &mut Silent)));
            group.finish();
        }
    }
}

fn searches(criterion: &mut Criterion) {
    let records = records(1_000_000, 10);
    let points = admitted(&records);
    let mut group = criterion.benchmark_group("admission");
    group.bench_function(id(&records), |b| b.iter(|| admitted(&records)));
    group.finish();
    let mut group = criterion.benchmark_group("pair_counts");
    let radii: Vec<f64> = (-1022..1000).map(|k| f64::from(k).exp2()).collect();
    let pairs = Issued::new(PairCounts::new(radii, 1, tape().hidden(), 0, (0, 0)).expect("ascending radii"));
    group.bench_function(id(&records), |b| b.iter(|| pairs.answer(&points, &mut Silent)));
    group.finish();
    let mut group = criterion.benchmark_group("distance_counts");
    let distances = Issued::new(DistanceCounts::new(&[0.1; 10], 0, (0, 0)).expect("a lattice"));
    group.bench_function(id(&records), |b| b.iter(|| distances.answer(&points, &mut Silent)));
    group.finish();
    let mut group = criterion.benchmark_group("curvature");
    let curvature = Issued::new(Curvature::new(&[0.1; 10], 1.5, 32).expect("a lattice"));
    group.bench_function(id(&records), |b| b.iter(|| curvature.answer(&points, &mut Silent)));
    group.finish();
    let mut group = criterion.benchmark_group("sample of 40000");
    // A stream can be used only once.
    group.bench_function(id(&records), |b| b.iter(|| sample::uniform(&points, tape().hidden(), 40_000)));
    group.finish();
    let mut group = criterion.benchmark_group("sample by coins of 1/32");
    group.bench_function(id(&records), |b| b.iter(|| sample::by_coins(&points, tape().hidden(), (1, 5))));
    group.finish();
    let mut group = criterion.benchmark_group("ranks, copies and 20 halvings");
    group.bench_function(id(&records), |b| {
        b.iter(|| {
            // New points for every round, because points keep the values that earlier queries have sorted.
            let points = admitted(&records);
            let rank = |k| {
                Issued::new(Ranks::new(&[0.5f64.powi(k); 10], 0, false).expect("a lattice"))
                    .answer(&points, &mut Silent)
            };
            (0..20).map(rank).collect::<Vec<_>>()
        });
    });
    group.finish();
}

/// Two balls of radius 2 whose centers are 2 apart.
fn lens(d: usize) -> Feasible {
    let ball = |x: f64| Ball::new((0..d).map(|j| if j == 0 { x } else { 0.0 }).collect(), 2.0);
    Feasible::Lens(ball(-1.0), ball(1.0))
}

fn descents(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("descent, 100 steps in a lens");
    for (n, d) in [(3_000, 200), (100_000, 10)] {
        let records = records(n, d);
        let points = admitted(&records);
        let descent = Descent {
            name: "bench".into(),
            start: vec![0.0; d],
            feasible: lens(d),
            step: 1.0 / n as f64,
            steps: 100,
            bits: 32,
            noise_multiplier: 128.0,
        };
        let mut tape = tape();
        group.bench_function(id(&records), |b| b.iter(|| descent.run(&points, &mut tape, &mut Silent)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("projection onto a lens");
    for d in [10, 200] {
        let lens = lens(d);
        group.bench_function(format!("n=1,d={d}"), |b| {
            b.iter(|| {
                let mut x = vec![1.0; d];
                lens.project(&mut x);
                x
            });
        });
    }
    group.finish();
}

fn solver(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("geometric_median");
    for (n, d) in [(3_000, 200), (100_000, 10)] {
        let points = records(n, d);
        group.bench_function(id(&points), |b| b.iter(|| median::geometric_median(&admitted(&points), &mut Silent)));
    }
    group.finish();
}

/// Each of these benches makes one draw, so n = d = 1.
fn samplers(criterion: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut group = criterion.benchmark_group("draw");
    group.throughput(Throughput::Elements(1));
    for (name, sigma) in [("1", 1), ("30", 30), ("1000", 1000), ("2^20", 1 << 20), ("2^40", 1 << 40), ("2^50", 1 << 50)]
    {
        let gaussian = DiscreteGaussian::new(sigma).expect("a positive sigma");
        group.bench_function(format!("discrete Gaussian, sigma={name}"), |b| b.iter(|| gaussian.sample(&mut rng)));
    }
    let laplace = DiscreteLaplace::new(1, 1 << 40).expect("a positive rate");
    group.bench_function("discrete Laplace, scale=2^40", |b| b.iter(|| laplace.sample(&mut rng)));
    let geometric = Geometric::new(1, 1 << 40).expect("a positive rate");
    group.bench_function("geometric, scale=2^40", |b| b.iter(|| geometric.sample(&mut rng)));
    let bernoulli = BernoulliExp::new(2, 3).expect("a fraction");
    group.bench_function("Bernoulli(exp(-2/3))", |b| b.iter(|| bernoulli.sample(&mut rng)));
    group.bench_function("uniform below 10^6", |b| b.iter(|| uniform::below(&mut rng, 1_000_000)));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = balls, sums, moments, searches, descents, solver, samplers
}
criterion_main!(benches);
