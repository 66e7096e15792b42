//! The client of the benchmark. It takes one job as JSON, does it, checks every answer, and prints what it measured as JSON.
//!
//! It runs on one thread, so that it takes no more than one core from what it measures.

mod calls;
mod clock;
mod http;
mod job;
mod listens;
mod message;
mod pipe;
mod process;
mod sessions;
mod start;

use job::Job;

/// What went wrong, as it is shown.
pub(crate) type Outcome<T> = Result<T, String>;

async fn run(job: Job) -> Outcome<serde_json::Value> {
    match job {
        Job::Calls(job) => calls::run(&job).await,
        Job::Pipe(job) => pipe::run(&job).await,
        Job::Listens(job) => listens::run(&job).await,
        Job::Sessions(job) => sessions::run(&job).await,
        Job::Start(job) => start::run(&job).await,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let job = std::env::args().nth(1).ok_or("usage: load JOB")?;
    let job = serde_json::from_str(&job).map_err(|error| format!("not a job: {error}"))?;
    println!("{}", run(job).await?);
    Ok(())
}
