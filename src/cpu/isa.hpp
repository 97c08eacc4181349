#pragma once

#include <optional>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// The instruction sets that the kernels are chosen by. kAvx2 stands for AVX2 and FMA, kAvx512 for
// AVX-512 F, BW, CD, DQ and VL; kPortable for what every processor of the architecture has (x86-64:
// up to SSE4 where there is one).
enum class CpuIsa { kPortable, kAvx2, kAvx512 };

// "portable", "avx2", "avx512".
std::string_view name(CpuIsa isa);
// The one of that name, if there is one.
std::optional<CpuIsa> find_cpu_isa(std::string_view name);

// The best that this machine has, and the operating system lets programs use.
CpuIsa machine_isa();

// What kernels of this process may use: machine_isa(), or what limit_cpu_isa() set.
CpuIsa cpu_isa();

// Whether our vector loops round a product and the sum that it goes into once, by FMA, or each: so
// do those of kPortable on x86-64, pinned ones among them.
bool fuses_products();

// Holds oneDNN, OpenBLAS and our vector loops alike to `isa`. To be called before threads are
// started and the first backend is made. OPENBLAS_CORETYPE, where the user set it, still decides
// for OpenBLAS. Errors: kUsage, naming what the machine lacks, or if a backend exists already.
Result<void> limit_cpu_isa(CpuIsa isa);

// Keeps this process from oneDNN, as if it had not been built in: OpenBLAS and our own loops do its
// work. To be called before threads are started and the first backend is made. Error: kUsage, if a
// backend exists already.
Result<void> leave_out_onednn();

// Holds this process to kernels that give the same bits on every machine of the architecture: the
// vector loops of kPortable, OpenBLAS' for Nehalem whatever OPENBLAS_CORETYPE says, none of
// oneDNN's, which choose by the sizes of caches. Its backends are to be made with kPinnedParts,
// that threads make no difference either. In force until the process ends; may be called again.
// Errors: kUsage if a backend exists already or check_pinnable() refuses the processor.
// Thread safety: any thread.
Result<void> pin_cpu_kernels();
bool are_cpu_kernels_pinned();

namespace cpu {

// Whether a processor whose best is `machine` computes what all others do that this allows: the
// kernels do anywhere, but on x86-64 the C library takes other code for std::pow, std::log and
// std::exp where there is no FMA. Error: kUsage.
Result<void> check_pinnable(CpuIsa machine);

// Whether oneDNN was built in and is not left out.
bool uses_onednn();

// Whether there are kernels of that precision: oneDNN's, where the machine has AVX-512 BF16 and it
// may be used.
bool has_bfloat16();

// The instruction set, and whether oneDNN is used, stay as they are from now on.
void settle_cpu_isa();

}  // namespace cpu
}  // namespace speedo
