// Containers and strings of the standard library, without exceptions.
//
// clang++ --target=wasm32-wasi -Os -fno-exceptions -Wl,--strip-all -o ordinary_cpp.wasm ordinary.cpp
// (Debian: clang lld wasi-libc libclang-rt-14-dev-wasm32 libc++-14-dev-wasm32 libc++abi-14-dev-wasm32)

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

int main() {
    std::vector<std::string> names;
    for (int i = 0; i < 10; i++)
        names.push_back("item" + std::to_string(i * 7 % 10));
    std::sort(names.begin(), names.end());
    for (const auto &name : names)
        std::printf("%s ", name.c_str());
    std::vector<double> numbers(5, 1.25);
    double sum = 0;
    for (double number : numbers)
        sum += number;
    std::printf("%f\n", sum);
}
