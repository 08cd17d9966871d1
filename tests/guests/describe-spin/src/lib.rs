//! A component that never returns from describe.

contract::export_describe!(super::describe);

fn describe() -> contract::types::Description {
    let mut turns = 0_u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
