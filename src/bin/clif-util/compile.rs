/// x
#[derive(clap::Args)]
pub struct Args {}
/// Runs the subcommand.
pub fn run(_args: &Args) -> crate::Outcome {
    Ok(())
}
