//! Selects at run time which vector instructions of the processor a kernel uses. No other module does this.
//!
//! A kernel is a value whose `run` is compiled once for every instruction set below and once for the baseline. All
//! versions give the same bits, because Rust neither fuses nor reorders floating-point operations, and because no
//! kernel makes its order of summation depend on the width of a register.

use multiversion::target::target_cfg_f;

/// Work whose inner loops should use the widest registers. `run` must be `#[inline(always)]`, and so must everything
/// that it calls, because only inlined code is compiled again for each instruction set.
pub trait Kernel {
    /// The type of the result.
    type Output;

    /// Does the work.
    fn run(self) -> Self::Output;

    /// Does the same work, with the same bits, if fused multiply-add is available. A kernel implements this function
    /// only if its products are exact, because only then do fused operations give the same bits.
    #[inline(always)]
    fn run_fused(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run()
    }

    /// Does the same work, with the same bits, if there are also 32 registers of eight doubles. A kernel implements
    /// this function if it can keep more sums in registers.
    #[inline(always)]
    fn run_wide(self) -> Self::Output
    where
        Self: Sized,
    {
        self.run_fused()
    }
}

/// Runs a kernel with the widest instruction set of this processor.
// This is sound because the macro calls a function that was compiled for an instruction set only after it has detected
// this instruction set. Rust cannot check this, so it requires `unsafe`.
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

/// [`vectorised`] without registers of 512 bits, for kernels that read numbers at a stride. With such registers the
/// compiler uses gather instructions, which take four times as long on some processors.
#[multiversion::multiversion(targets("x86_64+avx2+fma+bmi1+bmi2+lzcnt+popcnt"))]
pub fn vectorised_narrow<K: Kernel>(kernel: K) -> K::Output {
    if target_cfg_f!(target_feature = "fma") || cfg!(target_arch = "aarch64") {
        kernel.run_fused()
    } else {
        kernel.run()
    }
}

/// Runs a kernel on the baseline instruction set; `vectorised` must agree with the result bit for bit.
#[inline(never)]
pub fn portable<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}
