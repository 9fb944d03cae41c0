//! Runtime dispatch to the vector instructions of the processor; no other module does this.
//!
//! A kernel is a value whose `run` is compiled once for every instruction set below and once for the baseline. The bits
//! agree on every path: Rust neither contracts nor reassociates floating-point operations, and no kernel chooses its
//! order of summation by the width of a register.

use multiversion::target::target_cfg_f;

/// Work whose inner loops should use the widest registers. `run` must be `#[inline(always)]`, and so must everything
/// that it calls, because only inlined code is compiled again for each instruction set.
pub trait Kernel {
    /// The type of the result.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;

    /// Does the same work, with the same bits, if fused multiply-add is available: for kernels whose products are
    /// exact, so that both ways agree.
    #[inline(always)]
    fn run_fused(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }

    /// Does the same work, with the same bits, if there are also 32 registers of eight doubles: for kernels that keep
    /// more sums in registers.
    #[inline(always)]
    fn run_wide(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run_fused()
    }
}

/// Runs a kernel on the widest instruction set that this processor has.
// The macro calls a function that was compiled for an instruction set only after it has detected that set. Rust cannot
// see this and requires `unsafe`.
#[multiversion::multiversion(targets(
    "x86_64+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+avx2+fma+bmi1+bmi2+lzcnt+popcnt",
    "x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt",
))]
pub fn vectorised<K: Kernel>(kernel: K) -> K::Output {
    let wide = target_cfg_f!(target_feature = "avx512f");
    // Every 64-bit ARM processor has fused multiply-add, so the baseline uses it there.
    let fused = target_cfg_f!(target_feature = "fma") || cfg!(target_arch = "aarch64");
    match (wide, fused) {
        (true, _) => kernel.run_wide(),
        (false, true) => kernel.run_fused(),
        (false, false) => kernel.run(),
    }
}

/// Runs a kernel on the baseline instruction set; `vectorised` must agree with the result bit for bit.
#[inline(never)]
pub fn portable<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
