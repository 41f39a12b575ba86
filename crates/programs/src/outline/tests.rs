mod course;
mod read;
